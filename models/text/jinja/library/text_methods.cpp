#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/library/formatting.h"
#include "models/text/jinja/library/methods.h"
#include "models/text/jinja/library/number_format.h"
#include "models/text/jinja/values/characters.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

Value same_kind(Runtime& runtime, const Value& self, std::string result) {
  return make_string(runtime.budget, std::move(result), self.text().markup);
}

template <std::string (*Change)(std::string_view)>
Value changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("the method", arguments, {});
  runtime.budget->step(static_cast<std::int64_t>(self.utf8().size() / 8));
  return same_kind(runtime, self, Change(self.utf8()));
}

template <bool (*Holds)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("the method", arguments, {});
  std::string_view rest = self.utf8();
  runtime.budget->step(static_cast<std::int64_t>(rest.size() / 8));
  if (rest.empty()) return Value::boolean(false);
  for (; !rest.empty(); rest.remove_prefix(first_character(rest).size()))
    if (!Holds(code_point(first_character(rest)))) return Value::boolean(false);
  return Value::boolean(true);
}

bool is_letter_or_number(char32_t code) {
  return is_alphabetic(code) || is_decimal(code) || is_digit_character(code) || is_numeric_character(code);
}

/// True if there are cased characters and all of them have the same case.
template <bool (*Wanted)(char32_t), bool (*Other)(char32_t)>
Value has_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("the method", arguments, {});
  runtime.budget->step(static_cast<std::int64_t>(self.utf8().size() / 8));
  bool found = false;
  for (std::string_view rest = self.utf8(); !rest.empty(); rest.remove_prefix(first_character(rest).size())) {
    const char32_t code = code_point(first_character(rest));
    if (Other(code) || is_title(code)) return Value::boolean(false);
    found = found || Wanted(code);
  }
  return Value::boolean(found);
}

Value is_titled(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("istitle", arguments, {});
  bool found = false, inside = false;
  for (std::string_view rest = self.utf8(); !rest.empty(); rest.remove_prefix(first_character(rest).size())) {
    const char32_t code = code_point(first_character(rest));
    const bool big = is_upper(code) || is_title(code), small = is_lower(code);
    if ((big && inside) || (small && !inside)) return Value::boolean(false);
    inside = big || small;
    found = found || inside;
  }
  return Value::boolean(found);
}

Value is_ascii(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("isascii", arguments, {});
  return Value::boolean(self.text().ascii());
}

Value is_printable_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return self.utf8().empty() ? Value::boolean(true) : all_are<is_printable>(runtime, self, arguments);
}

Value is_identifier(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("isidentifier", arguments, {});
  bool first = true, fits = !self.utf8().empty();
  for (std::string_view rest = self.utf8(); !rest.empty(); rest.remove_prefix(first_character(rest).size())) {
    const char32_t code = code_point(first_character(rest));
    fits = fits && (code == '_' || is_alphabetic(code) || (!first && is_decimal(code)));
    first = false;
  }
  return Value::boolean(fits);
}

template <bool Front, bool Back>
Value strip(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("strip", arguments);
  const Given given("strip", arguments, {"chars"});
  std::string_view text = self.utf8();
  if (given.has(0)) {
    text = strip_set(text, given.string(0, ""), Front, Back);
  } else {
    if (Front) text = strip_front(text);
    if (Back) text = strip_back(text);
  }
  return text.size() == self.utf8().size() ? self : same_kind(runtime, self, std::string(text));
}

/// The length of the affix with which the text begins or ends. Returns nothing if there is no such affix.
template <bool Front>
bool has_affix(const Value& self, const Value& affix) {
  if (!affix.is(Kind::string)) fail("startswith and endswith want a str or a tuple of str");
  return Front ? self.utf8().starts_with(affix.utf8()) : self.utf8().ends_with(affix.utf8());
}

template <bool Front>
Value tests_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named(Front ? "startswith" : "endswith", arguments);
  const Given given(Front ? "startswith" : "endswith", arguments, {"affix", "start", "end"}, 1);
  Value text = self;
  if (given.has(1) || given.has(2)) {
    if (given.whole(1, 0) > static_cast<std::int64_t>(self.text().length)) return Value::boolean(false);
    text = slice_of(runtime, self, given.value(1, Value::none()), given.value(2, Value::none()), Value::none());
  }
  if (!given[0]->is(Kind::tuple)) return Value::boolean(has_affix<Front>(text, *given[0]));
  for (const Value& affix : given[0]->items())
    if (has_affix<Front>(text, affix)) return Value::boolean(true);
  return Value::boolean(false);
}

template <bool Front>
Value remove_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("removeprefix", arguments);
  const Given given(Front ? "removeprefix" : "removesuffix", arguments, {"affix"}, 1);
  std::string_view text = self.utf8();
  const std::string_view affix = given.string(0, "");
  if (Front ? !text.starts_with(affix) : !text.ends_with(affix)) return self;
  if (Front)
    text.remove_prefix(affix.size());
  else
    text.remove_suffix(affix.size());
  return same_kind(runtime, self, std::string(text));
}

template <char Align>
Value pad(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("center, ljust and rjust", arguments);
  const Given given("pad", arguments, {"width", "fillchar"}, 1);
  FormatSpec spec;
  spec.width = given.whole(0, 0);
  spec.fill = given.string(1, " ");
  if (count_characters(spec.fill) != 1) fail("The fill character must be exactly one character long");
  const std::int64_t missing = spec.width - static_cast<std::int64_t>(self.text().length);
  if (Align != '^' || missing <= 0) {
    spec.align = Align;
    return same_kind(runtime, self, padded(runtime.budget, "", self.utf8(), spec));
  }
  const std::int64_t left = missing / 2 + (missing & spec.width & 1);  // str.center gives the odd place to the left so
  TextBuilder text(runtime.budget);
  text.add(spec.fill, left) += self.utf8();
  return text.add(spec.fill, missing - left).value(self.text().markup);
}

Value zero_fill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("zfill", arguments);
  const Given given("zfill", arguments, {"width"}, 1);
  const bool has_sign = self.utf8().starts_with('-') || self.utf8().starts_with('+');
  FormatSpec spec;
  spec.fill = "0";
  spec.align = '=';
  spec.width = given.whole(0, 0);
  return same_kind(runtime, self,
                   padded(runtime.budget, self.utf8().substr(0, has_sign), self.utf8().substr(has_sign), spec));
}

Value expand_tabs(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given given("expandtabs", arguments, {"tabsize"});
  const std::int64_t size = given.whole(0, 8);
  TextBuilder text(runtime.budget);
  std::int64_t column = 0;
  for (std::string_view rest = self.utf8(); !rest.empty(); rest.remove_prefix(first_character(rest).size())) {
    const std::string_view character = first_character(rest);
    if (character == "\t") {
      const std::int64_t blanks = size > 0 ? size - column % size : 0;
      text.add(" ", blanks);
      column += blanks;
      continue;
    }
    text += character;
    column = character == "\n" || character == "\r" ? 0 : column + 1;
  }
  return text.value(self.text().markup);
}

constexpr std::pair<std::string_view, Method> methods[] = {
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"upper", changed<upper_case>},
    {"lower", changed<lower_case_of>},
    {"casefold", changed<fold_case>},
    {"title", changed<title_case>},
    {"capitalize", changed<capitalized>},
    {"swapcase", changed<swapped_case>},
    {"startswith", tests_affix<true>},
    {"endswith", tests_affix<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"isspace", all_are<is_space>},
    {"isalpha", all_are<is_alphabetic>},
    {"isalnum", all_are<is_letter_or_number>},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit_character>},
    {"isnumeric", all_are<is_numeric_character>},
    {"isprintable", is_printable_text},
    {"isascii", is_ascii},
    {"isidentifier", is_identifier},
    {"isupper", has_case<is_upper, is_lower>},
    {"islower", has_case<is_lower, is_upper>},
    {"istitle", is_titled},
    {"center", pad<'^'>},
    {"ljust", pad<'<'>},
    {"rjust", pad<'>'>},
    {"zfill", zero_fill},
    {"expandtabs", expand_tabs},
    {"format", str_format},
};

}  // namespace

Method find_text_method(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(methods), std::end(methods), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(methods) ? nullptr : found->second;
}

}  // namespace zero::jinja
