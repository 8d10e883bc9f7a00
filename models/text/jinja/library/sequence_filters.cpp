#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/library/filters.h"
#include "models/text/jinja/values/characters.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

Value length(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("length", arguments, {});
  const auto length = length_of(subject);
  if (!length) fail(text("object of type '", type_name(subject), "' has no len()"));
  return Value::integer(*length);
}

Value list(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("list", arguments, {});
  return make_list(runtime.budget, list_of(subject));
}

Value first(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("first", arguments, {});
  const auto found = Iterator(subject).next();
  return found ? *found : make_undefined(runtime.budget, "No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("last", arguments, {});
  if (subject.is(Kind::generator) || !is_iterable(subject))
    fail(text("'", type_name(subject), "' object is not reversible"));
  const std::vector<Value> items = list_of(subject);
  return items.empty() ? make_undefined(runtime.budget, "No last item, sequence was empty.") : items.back();
}

Value otherwise(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("default", arguments, {"default_value", "boolean"});
  const bool replaces = subject.is(Kind::undefined) || (given.flag(1, false) && !truth(subject));
  if (!replaces) return subject;
  return given[0] ? *given[0] : make_string(runtime.budget, "");
}

Value join(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("join", arguments, {"d", "attribute"});
  const std::string mark = given[0] ? to_text(*given[0]) : "";
  TextBuilder out(runtime.budget);
  Iterator items(subject);
  bool begin = true;
  while (const auto item = items.next()) {
    if (!begin) out += mark;
    begin = false;
    out += to_text(given.has(1) ? follow(runtime, *item, *given[1]) : *item);
  }
  return out.value();
}

std::vector<Value> keys_of(Runtime& runtime, const std::vector<Value>& items, const Value& path, bool case_sensitive,
                           const Value* fallback = nullptr) {
  std::vector<Value> keys;
  for (const Value& item : items)
    keys.push_back(comparable(runtime, follow(runtime, item, path, fallback), case_sensitive));
  return keys;
}

/// Keys of several attributes, "name,age": a list each.
std::vector<Value> lists_of_keys(Runtime& runtime, const std::vector<Value>& items, const std::string& paths,
                                 bool case_sensitive) {
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (std::size_t begin = 0; begin <= paths.size();) {
      const std::size_t end = std::min(paths.find(',', begin), paths.size());
      const Value path = make_string(runtime.budget, paths.substr(begin, end - begin));
      key.push_back(comparable(runtime, follow(runtime, item, path), case_sensitive));
      begin = end + 1;
    }
    keys.push_back(make_list(runtime.budget, std::move(key)));
  }
  return keys;
}

Value sort(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Value> items = list_of(subject);
  const bool several = given[2] && given[2]->is(Kind::string) && given[2]->utf8().find(',') != std::string::npos;
  const std::vector<Value> keys = several
                                      ? lists_of_keys(runtime, items, given[2]->utf8(), given.flag(1, false))
                                      : keys_of(runtime, items, given.value(2, Value::none()), given.flag(1, false));
  sort_by(items, keys, given.flag(0, false));
  return make_list(runtime.budget, std::move(items));
}

template <bool Max>
Value extreme(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given(Max ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> items = list_of(subject);
  if (items.empty()) return make_undefined(runtime.budget, "No aggregated item, sequence was empty.");
  const std::vector<Value> keys = keys_of(runtime, items, given.value(1, Value::none()), given.flag(0, false));
  std::size_t best = 0;
  for (std::size_t i = 1; i < items.size(); ++i)
    if (Max ? less(keys[best], keys[i]) : less(keys[i], keys[best])) best = i;
  return items[best];
}

Value dict_sort(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  if (!subject.is(Kind::dict)) fail(text("'", type_name(subject), "' object has no attribute 'items'"));
  const std::string_view by = given.string(1, "key");
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  std::vector<Value> items, keys;
  for (const auto& [key, value] : subject.dict().entries) {
    items.push_back(make_tuple(runtime.budget, {key, value}));
    keys.push_back(comparable(runtime, by == "key" ? key : value, given.flag(0, false)));
  }
  sort_by(items, keys, given.flag(2, false));
  return make_list(runtime.budget, std::move(items));
}

Value group_by(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const Value* fallback = given.has(1) ? given[1] : nullptr;
  std::vector<Value> items = list_of(subject), groups;
  const auto keys = [&](bool sensitive) { return keys_of(runtime, items, *given[0], sensitive, fallback); };
  const bool sensitive = given.flag(2, false);
  sort_by(items, keys(sensitive), false);
  const std::vector<Value> sorted = keys(sensitive), shown = keys(true);
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin + 1;
    while (end < items.size() && equal(sorted[begin], sorted[end])) ++end;
    std::vector<Value> members(items.begin() + static_cast<std::ptrdiff_t>(begin),
                               items.begin() + static_cast<std::ptrdiff_t>(end));
    Value group = make_tuple(runtime.budget, {shown[begin], make_list(runtime.budget, std::move(members))});
    group.as<Sequence>().group = true;
    groups.push_back(std::move(group));
    begin = end;
  }
  return make_list(runtime.budget, std::move(groups));
}

Value sum(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("sum", arguments, {"attribute", "start"});
  Value total = given.value(1, Value::integer(0));
  if (total.is(Kind::string)) fail("sum() can't sum strings [use ''.join(seq) instead]");
  Iterator items(subject);
  while (const auto item = items.next())
    total = binary(runtime, "+", total, given.has(0) ? follow(runtime, *item, *given[0]) : *item);
  return total;
}

Value absolute(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("abs", arguments, {});
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  if (!subject.is_number()) fail(text("bad operand type for abs(): '", type_name(subject), "'"));
  if (subject.is(Kind::real)) return Value::real(std::abs(subject.real()));
  return subject.integer() < 0 ? negated(subject) : Value::integer(subject.integer());
}

Value round(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("round", arguments, {"precision", "method"});
  const std::int64_t precision = given.whole(0, 0);
  const std::string_view method = given.string(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  if (!subject.is_number()) fail(text("type ", type_name(subject), " doesn't define __round__ method"));
  if (precision < 0 || precision > 300) refuse("round with a precision below 0 or above 300 is not done here");
  if (method == "common") {
    if (subject.is_whole() || !std::isfinite(subject.real()))
      return subject.is_whole() ? Value::integer(subject.integer()) : subject;
    char digits[700];
    std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(precision), subject.real());
    return Value::real(std::strtod(digits, nullptr));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision)), scaled = subject.real() * scale;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

/// A number written out: white space around it, a sign, single underscores between digits.
std::string plain_digits(std::string_view text) {
  std::string digits(strip_back(strip_front(text)));
  for (std::size_t i = 0; i < digits.size(); ++i)
    if (digits[i] == '_' &&
        (i == 0 || i + 1 == digits.size() || !std::isalnum(static_cast<unsigned char>(digits[i - 1])) ||
         !std::isalnum(static_cast<unsigned char>(digits[i + 1]))))
      return "";
  std::erase(digits, '_');
  return digits;
}

std::optional<double> parse_real(std::string_view text) {
  const std::string digits = plain_digits(text);
  if (digits.empty() || digits.find_first_of("xXpP(") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  return end == digits.c_str() + digits.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> parse_whole(std::string_view text, std::int64_t base) {
  std::string digits = plain_digits(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const char mark = digits.size() > 2 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : ' ';
  if ((base == 16 && mark == 'x') || (base == 8 && mark == 'o') || (base == 2 && mark == 'b')) digits.erase(0, 2);
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, static_cast<int>(base));
  if (error == std::errc::result_out_of_range) refuse(zero::text("the integer ", digits, " does not fit into 64 bits"));
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return negative ? -number : number;
}

Value to_whole(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("int", arguments, {"default", "base"});
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  std::optional<double> value;
  if (subject.is_whole()) return Value::integer(subject.integer());
  if (subject.is(Kind::real)) value = subject.real();
  if (subject.is(Kind::string)) {
    const std::int64_t base = given.whole(1, 10);
    if (base < 2 || base > 36) refuse("int: a base that is not 2 to 36");
    if (const auto whole = parse_whole(subject.utf8(), base)) return Value::integer(*whole);
    value = parse_real(subject.utf8());
  }
  if (!value || !std::isfinite(*value)) return given.value(0, Value::integer(0));
  if (std::abs(*value) >= 9.2e18) refuse(text("the integer of ", show_real(*value), " does not fit into 64 bits"));
  return Value::integer(static_cast<std::int64_t>(*value));
}

Value to_real(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("float", arguments, {"default"});
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  if (subject.is_number()) return Value::real(subject.real());
  const auto value = subject.is(Kind::string) ? parse_real(subject.utf8()) : std::nullopt;
  return value ? Value::real(*value) : given.value(0, Value::real(0));
}

Value attribute(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("attr", arguments, {"name"}, 1);
  Value found = own_attribute(runtime, subject, given.string(0, ""));
  return found.is(Kind::missing) ? make_undefined(runtime.budget, text("there is no attribute ", repr(*given[0])))
                                 : found;
}

constexpr std::pair<std::string_view, Filter> filters[] = {
    {"length", length},      {"count", length},      {"list", list},
    {"first", first},        {"last", last},         {"default", otherwise},
    {"d", otherwise},        {"join", join},         {"sort", sort},
    {"min", extreme<false>}, {"max", extreme<true>}, {"dictsort", dict_sort},
    {"groupby", group_by},   {"sum", sum},           {"abs", absolute},
    {"round", round},        {"int", to_whole},      {"float", to_real},
    {"attr", attribute},
};

}  // namespace

Value follow(Runtime& runtime, const Value& item, const Value& path, const Value* fallback) {
  if (path.is(Kind::none)) return item;
  Value value = item;
  const auto step = [&](const Value& key) {
    value = item_of(runtime, value, key);
    if (fallback && value.is(Kind::undefined)) value = *fallback;
  };
  if (!path.is(Kind::string)) {
    step(path);
    return value;
  }
  const std::string& names = path.utf8();
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find('.', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    const bool number = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
    step(number ? Value::integer(std::stol(name)) : make_string(runtime.budget, name));
    begin = end + 1;
  }
  return value;
}

Value comparable(Runtime& runtime, Value value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::string)) return value;
  return make_string(runtime.budget, lower_case_of(value.utf8()));
}

Filter find_sequence_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(filters), std::end(filters), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(filters) ? nullptr : found->second;
}

Filter find_filter(std::string_view name) {
  if (const Filter found = find_text_filter(name)) return found;
  if (const Filter found = find_sequence_filter(name)) return found;
  return find_lazy_filter(name);
}

}  // namespace zero::jinja
