#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/library/methods.h"
#include "models/text/jinja/library/text_search.h"
#include "models/text/jinja/values/characters.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr int step_of_piece = 4;  // operations: pieces take memory before they are values

/// Splits at white space, at most `most` times (negative: always), from the front or the back.
std::vector<std::string_view> words(Budget& budget, std::string_view text, std::int64_t most, bool from_back) {
  std::vector<std::string_view> pieces;
  for (text = from_back ? strip_back(text) : strip_front(text); !text.empty();) {
    budget.step(step_of_piece);
    if (most >= 0 && static_cast<std::int64_t>(pieces.size()) == most) {
      pieces.push_back(text);
      break;
    }
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view character = from_back ? last_character(rest) : first_character(rest);
      if (is_space(code_point(character))) break;
      if (from_back)
        rest.remove_suffix(character.size());
      else
        rest.remove_prefix(character.size());
    }
    pieces.push_back(from_back ? text.substr(rest.size()) : text.substr(0, text.size() - rest.size()));
    text = from_back ? strip_back(rest) : strip_front(rest);
  }
  if (from_back) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> pieces_between(Budget& budget, std::string_view text, std::string_view mark,
                                             std::int64_t most, bool from_back) {
  std::vector<std::string_view> pieces;
  while (most < 0 || static_cast<std::int64_t>(pieces.size()) < most) {
    budget.step(step_of_piece);
    const std::size_t at = from_back ? text.rfind(mark) : text.find(mark);
    if (at == npos) break;
    pieces.push_back(from_back ? text.substr(at + mark.size()) : text.substr(0, at));
    text = from_back ? text.substr(0, at) : text.substr(at + mark.size());
  }
  pieces.push_back(text);
  if (from_back) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Value strings(Runtime& runtime, const Value& self, const std::vector<std::string_view>& pieces) {
  std::vector<Value> list;
  list.reserve(pieces.size());
  runtime.budget->step(static_cast<std::int64_t>(pieces.size() + self.utf8().size() / 16));
  for (const std::string_view piece : pieces)
    list.push_back(make_string(runtime.budget, std::string(piece), self.text().markup));
  return make_list(runtime.budget, std::move(list));
}

template <bool FromBack>
Value split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given given("split", arguments, {"sep", "maxsplit"});
  const std::int64_t most = given.whole(1, -1);
  if (!given.has(0)) return strings(runtime, self, words(*runtime.budget, self.utf8(), most, FromBack));
  const std::string_view mark = given.string(0, "");
  if (mark.empty()) fail("empty separator");
  return strings(runtime, self, pieces_between(*runtime.budget, self.utf8(), mark, most, FromBack));
}

Value split_lines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given given("splitlines", arguments, {"keepends"});
  return strings(runtime, self, lines_of(*runtime.budget, self.utf8(), given.flag(0, false)));
}

template <bool FromBack>
Value partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("partition", arguments);
  const Given given("partition", arguments, {"sep"}, 1);
  const std::string_view all = self.utf8(), mark = given.string(0, "");
  if (mark.empty()) fail("empty separator");
  const std::size_t at = FromBack ? all.rfind(mark) : all.find(mark);
  std::vector<std::string_view> parts{all.substr(0, at), mark, at == npos ? "" : all.substr(at + mark.size())};
  if (at == npos)
    parts = FromBack ? std::vector<std::string_view>{"", "", all} : std::vector<std::string_view>{all, "", ""};
  return make_tuple(runtime.budget, strings(runtime, self, parts).items());
}

Value replace(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("replace", arguments);
  const Given given("replace", arguments, {"old", "new", "count"}, 2);
  return make_string(
      runtime.budget,
      replaced(runtime.budget, self.utf8(), given.string(0, ""), given.string(1, ""), given.whole(2, -1)),
      self.text().markup);
}

Value join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("join", arguments);
  const Given given("join", arguments, {"iterable"}, 1);
  TextBuilder text(runtime.budget);
  bool first = true;
  Iterator items(*given[0]);
  for (std::int64_t place = 0; const auto item = items.next(); ++place) {
    if (!item->is(Kind::string))
      fail(zero::text("sequence item ", place, ": expected str instance, ", type_name(*item), " found"));
    if (!first) text += self.utf8();
    first = false;
    text += self.text().markup && !item->text().markup ? escape_html(item->utf8()) : item->utf8();
  }
  return text.value(self.text().markup);
}

/// The bytes of the text between the characters start and end of the arguments.
struct Window {
  std::string_view text;
  std::int64_t first;  // character that it begins with
  bool possible;       // the start does not lie behind the text
};

Window window_of(const Value& self, const Given& given) {
  const auto length = static_cast<std::int64_t>(self.text().length);
  const auto place = [&](std::size_t which, std::int64_t otherwise) {
    const std::int64_t at = given.has(which) ? given.whole(which, otherwise) : otherwise;
    return std::max<std::int64_t>(at < 0 ? at + length : at, 0);
  };
  const std::int64_t begin = place(1, 0), end = std::min(place(2, length), length);
  if (begin > length || end < begin) return {"", begin, false};
  const std::string_view all = self.utf8();
  const std::size_t from = byte_of(all, static_cast<std::size_t>(begin)),
                    to = byte_of(all, static_cast<std::size_t>(end));
  return {all.substr(from, to - from), begin, true};
}

template <bool FromBack>
std::int64_t place_of(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("find", arguments);
  const Given given("find", arguments, {"sub", "start", "end"}, 1);
  const std::string_view wanted = given.string(0, "");
  runtime.budget->step(static_cast<std::int64_t>(self.utf8().size() / 16));
  const Window window = window_of(self, given);
  if (!window.possible) return -1;
  const std::size_t at = FromBack ? window.text.rfind(wanted) : window.text.find(wanted);
  return at == npos ? -1 : window.first + static_cast<std::int64_t>(count_characters(window.text.substr(0, at)));
}

template <bool FromBack>
Value find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Value::integer(place_of<FromBack>(runtime, self, arguments));
}

template <bool FromBack>
Value index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::int64_t place = place_of<FromBack>(runtime, self, arguments);
  if (place < 0) fail("substring not found");
  return Value::integer(place);
}

Value count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("count", arguments);
  const Given given("count", arguments, {"sub", "start", "end"}, 1);
  const std::string_view wanted = given.string(0, "");
  runtime.budget->step(static_cast<std::int64_t>(self.utf8().size() / 16));
  const Window window = window_of(self, given);
  if (!window.possible) return Value::integer(0);
  if (wanted.empty()) return Value::integer(static_cast<std::int64_t>(count_characters(window.text)) + 1);
  std::int64_t found = 0;
  for (std::size_t at = window.text.find(wanted); at != npos; at = window.text.find(wanted, at + wanted.size()))
    ++found;
  return Value::integer(found);
}

constexpr std::pair<std::string_view, Method> methods[] = {
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", split_lines},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"replace", replace},
    {"join", join},
    {"find", find<false>},
    {"rfind", find<true>},
    {"index", index<false>},
    {"rindex", index<true>},
    {"count", count},
};

}  // namespace

std::vector<std::string_view> lines_of(Budget& budget, std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = first_character(text.substr(at));
    const char32_t code = code_point(character);
    const std::size_t next = at + (code == '\r' && text.substr(at).starts_with("\r\n") ? 2 : character.size());
    const bool ends = (code >= '\n' && code <= '\r') || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
                      code == 0x2028 || code == 0x2029;
    if (ends) {
      budget.step(step_of_piece);
      lines.push_back(text.substr(begin, (keep_ends ? next : at) - begin));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string replaced(Budget* budget, std::string_view text, std::string_view old, std::string_view fresh,
                     std::int64_t most) {
  TextBuilder out(budget);
  std::size_t at = 0;
  for (; most != 0; --most) {
    std::size_t found = at;
    if (old.empty()) {
      out += fresh;
      if (at == text.size()) return out.take();
      found = at + first_character(text.substr(at)).size();
      out += text.substr(at, found - at);
      budget->step();
      at = found;
      continue;
    }
    found = text.find(old, at);
    if (found == npos) break;
    budget->step();
    out += text.substr(at, found - at);
    out += fresh;
    at = found + old.size();
  }
  out += text.substr(at);
  return out.take();
}

Method find_text_search_method(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(methods), std::end(methods), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(methods) ? nullptr : found->second;
}

}  // namespace zero::jinja
