#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/library/filters.h"
#include "models/text/jinja/library/formatting.h"
#include "models/text/jinja/library/methods.h"
#include "models/text/jinja/library/text_search.h"
#include "models/text/jinja/values/characters.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

/// str() of the value. A string is returned unchanged.
Value soft_text(Runtime& runtime, const Value& value) {
  return value.is(Kind::string) ? value : make_string(runtime.budget, to_text(value));
}

Value by_method(Runtime& runtime, const char* name, const Value& subject, const Arguments& arguments) {
  return find_text_method(name)(runtime, soft_text(runtime, subject), arguments);
}

Value upper(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return by_method(runtime, "upper", subject, arguments);
}
Value lower(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return by_method(runtime, "lower", subject, arguments);
}
Value capitalize(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return by_method(runtime, "capitalize", subject, arguments);
}

Value trim(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("trim", arguments, {"chars"});
  return by_method(runtime, "strip", subject, {given[0] ? std::vector<Value>{*given[0]} : std::vector<Value>{}, {}});
}

Value center(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("center", arguments, {"width"});
  return by_method(runtime, "center", subject, {{given.value(0, Value::integer(80))}, {}});
}

/// Capitalises the first letter of words: after blanks, hyphens and opening brackets.
Value title(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("title", arguments, {});
  const Value source = soft_text(runtime, subject);
  std::string result, word;
  const auto end_word = [&] {
    if (!word.empty())
      result += upper_case(first_character(word)) +
                lower_case_of(std::string_view(word).substr(first_character(word).size()));
    word.clear();
  };
  for (std::string_view rest = source.utf8(); !rest.empty(); rest.remove_prefix(first_character(rest).size())) {
    const std::string_view character = first_character(rest);
    if (!is_space(code_point(character)) && std::string_view("-({[<").find(character) == std::string_view::npos) {
      word += character;
      continue;
    }
    end_word();
    result += character;
  }
  end_word();
  return make_string(runtime.budget, std::move(result));
}

Value replace(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("replace", arguments, {"old", "new", "count"}, 2);
  return make_string(runtime.budget, replaced(runtime.budget, to_text(subject), to_text(*given[0]), to_text(*given[1]),
                                              given.has(2) ? given.whole(2, -1) : -1));
}

Value string(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("string", arguments, {});
  return soft_text(runtime, subject);
}

Value safe(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("safe", arguments, {});
  return make_string(runtime.budget, to_text(subject), true);
}

Value escape(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("escape", arguments, {});
  if (subject.is(Kind::string) && subject.text().markup) return subject;
  return make_string(runtime.budget, escape_html(to_text(subject)), true);
}

Value force_escape(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("forceescape", arguments, {});
  return make_string(runtime.budget, escape_html(to_text(subject)), true);
}

Value to_json_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = given.flag(0, false);
  style.sort = given.flag(3, false);
  if (given.has(1)) {
    style.indented = true;
    style.item = ",";
    if (given[1]->is(Kind::string))
      style.indent = given[1]->utf8();
    else if (given.whole(1, 0) > 1000)
      refuse("tojson: an indent of more than 1000 is not done here");
    else
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(given.whole(1, 0), 0)), ' ');
  }
  if (given.has(2)) {
    const std::vector<Value> marks = list_of(*given[2]);
    if (marks.size() != 2 || !marks[0].is(Kind::string) || !marks[1].is(Kind::string))
      fail("tojson: separators are two strings");
    style.item = marks[0].utf8();
    style.key = marks[1].utf8();
  }
  return make_string(runtime.budget, to_json(subject, style));
}

Value indent(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("indent", arguments, {"width", "first", "blank"});
  if (!subject.is(Kind::string)) fail("indent wants a str");
  const Value source = subject;
  TextBuilder margin(runtime.budget), out(runtime.budget);
  if (given[0] && given[0]->is(Kind::string))
    margin += given[0]->utf8();
  else
    margin.add(" ", given.whole(0, 4));
  const bool first = given.flag(1, false), blank = given.flag(2, false);
  const std::string whole = source.utf8() + "\n";  // as in jinja2: a line end at the end makes one more line
  bool begin = true;
  for (const std::string_view line : lines_of(*runtime.budget, whole, false)) {
    if (!begin) out += "\n";
    if (begin ? first : blank || !line.empty()) out += margin.text();
    out += line;
    begin = false;
  }
  return out.value(source.text().markup);
}

Value word_count(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("wordcount", arguments, {});
  std::int64_t count = 0;
  bool inside = false;
  const Value source = soft_text(runtime, subject);
  for (std::string_view rest = source.utf8(); !rest.empty(); rest.remove_prefix(first_character(rest).size())) {
    const char32_t code = code_point(first_character(rest));
    const bool word = code == '_' || is_alphabetic(code) || is_numeric_character(code);
    count += word && !inside;
    inside = word;
  }
  return Value::integer(count);
}

Value truncate(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (!subject.is(Kind::string)) fail("truncate wants a str");
  const std::int64_t length = given.whole(0, 255), leeway = given.has(3) ? given.whole(3, 5) : 5;
  const std::string end(given.string(2, "..."));
  const auto end_length = static_cast<std::int64_t>(count_characters(end));
  if (length < end_length) fail(text("expected length >= ", end_length, ", got ", length));
  if (leeway < 0) fail(text("expected leeway >= 0, got ", leeway));
  const std::string& all = subject.utf8();
  if (static_cast<std::int64_t>(subject.text().length) <= length + leeway) return subject;
  std::string cut = all.substr(0, byte_of(all, static_cast<std::size_t>(length - end_length)));
  if (!given.flag(1, false))
    if (const std::size_t blank = cut.rfind(' '); blank != std::string::npos) cut.resize(blank);
  return make_string(runtime.budget, cut + end);
}

Value format(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty())
    fail("can't handle positional and keyword arguments at the same time");
  if (arguments.named.empty())
    return percent_format(runtime, soft_text(runtime, subject), make_tuple(runtime.budget, arguments.positional));
  DictBuilder values(runtime.budget);
  for (const auto& [name, value] : arguments.named) values.set(make_string(runtime.budget, name), value);
  return percent_format(runtime, soft_text(runtime, subject), values.take());
}

Value strip_tags(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("striptags", arguments, {});
  std::string rest = to_text(subject);
  for (const auto& [open, close] : {std::pair<std::string_view, std::string_view>{"<!--", "-->"}, {"<", ">"}})
    for (std::size_t begin = 0; (begin = rest.find(open, begin)) != std::string::npos;) {
      const std::size_t end = rest.find(close, begin);
      if (end == std::string::npos) break;
      rest.erase(begin, end + close.size() - begin);
      runtime.budget->step(static_cast<std::int64_t>(rest.size() / 64) + 1);
    }
  if (rest.find('&') != std::string::npos) refuse("striptags of a text with references (&...;) is not done here");
  const Value words = find_text_search_method("split")(runtime, make_string(runtime.budget, rest), {});
  std::string joined;
  for (const Value& word : words.items()) joined += (joined.empty() ? "" : " ") + word.utf8();
  return make_string(runtime.budget, std::move(joined));
}

void append_quoted(std::string_view text, bool query, std::string& out) {
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos || (!query && c == '/');
    if (plain) {
      out += c;
    } else if (query && c == ' ') {
      out += '+';
    } else {
      out += '%';
      out += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
      out += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
    }
  }
}

Value url_encode(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("urlencode", arguments, {});
  std::string out;
  if (subject.is(Kind::string) || !is_iterable(subject)) {
    append_quoted(to_text(subject), false, out);
    return make_string(runtime.budget, std::move(out));
  }
  const auto add = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += '&';
    append_quoted(to_text(key), true, out);
    out += '=';
    append_quoted(to_text(value), true, out);
  };
  if (subject.is(Kind::dict)) {
    for (const auto& [key, value] : subject.dict().entries) add(key, value);
  } else {
    for (const Value& pair : list_of(subject)) {
      const std::vector<Value> both = list_of(pair);
      if (both.size() != 2) fail("urlencode wants pairs");
      add(both[0], both[1]);
    }
  }
  return make_string(runtime.budget, std::move(out));
}

Value xml_attributes(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("xmlattr", arguments, {"autospace"});
  if (!subject.is(Kind::dict)) fail("xmlattr wants a mapping");
  std::string out;
  for (const auto& [key, value] : subject.dict().entries) {
    if (value.is(Kind::none) || value.is(Kind::undefined)) continue;
    const std::string name = to_text(key);
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      fail(text("Invalid character in attribute name: ", repr(name)));
    out += (out.empty() ? "" : " ") + escape_html(name) + "=\"" + escape_html(to_text(value)) + "\"";
  }
  return make_string(runtime.budget, given.flag(0, true) && !out.empty() ? " " + out : out);
}

Value file_size(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("filesizeformat", arguments, {"binary"});
  if (!subject.is_number()) refuse("filesizeformat accepts only numbers");
  const bool binary_units = given.flag(0, false);
  const double base = binary_units ? 1024 : 1000, bytes = subject.real();
  if (bytes == 1) return make_string(runtime.budget, "1 Byte");
  if (bytes < base) return make_string(runtime.budget, text(static_cast<std::int64_t>(bytes), " Bytes"));
  static constexpr std::string_view units = "kMGTPEZY";
  double unit = base * base;
  std::size_t i = 0;
  for (; bytes >= unit && i + 1 < units.size(); ++i) unit *= base;
  char number[64];
  std::snprintf(number, sizeof number, "%.1f", base * bytes / unit);
  const char letter = binary_units && i == 0 ? 'K' : units[i];
  return make_string(runtime.budget, text(number, " ", std::string(1, letter), binary_units ? "iB" : "B"));
}

template <const char* const* Name>
Value left_out(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  refuse(text("the filter ", *Name, " is not done here"));
}

constexpr const char *pprint = "pprint", *random = "random", *urlize = "urlize", *wordwrap = "wordwrap";

constexpr std::pair<std::string_view, Filter> filters[] = {
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"trim", trim},
    {"center", center},
    {"replace", replace},
    {"string", string},
    {"safe", safe},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
    {"tojson", to_json_filter},
    {"indent", indent},
    {"wordcount", word_count},
    {"truncate", truncate},
    {"format", format},
    {"striptags", strip_tags},
    {"urlencode", url_encode},
    {"xmlattr", xml_attributes},
    {"filesizeformat", file_size},
    {"pprint", left_out<&pprint>},
    {"random", left_out<&random>},
    {"urlize", left_out<&urlize>},
    {"wordwrap", left_out<&wordwrap>},
};

}  // namespace

Filter find_text_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(filters), std::end(filters), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(filters) ? nullptr : found->second;
}

}  // namespace zero::jinja
