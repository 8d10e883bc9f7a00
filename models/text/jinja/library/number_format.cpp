#include "models/text/jinja/library/number_format.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/characters.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

constexpr std::int64_t max_precision = 1000;

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

std::int64_t read_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) fail("a format specification lacks a number");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::string grouped(const std::string& digits, char separator, std::size_t size) {
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) result += separator;
    result += digits[i];
  }
  return result;
}

std::string sign_of(bool negative, char sign) { return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : ""; }

std::string format_whole(Budget* budget, std::int64_t number, const FormatSpec& spec) {
  const char type = spec.type ? spec.type : 'd';
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const std::uint64_t magnitude =
      number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  if (type == 'c') {
    if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) fail("%c arg not in range(0x110000)");
    std::string character;
    append_character(static_cast<char32_t>(number), character);
    return padded(budget, "", character, spec);
  }
  std::string body = digits_of(magnitude, base);
  std::string prefix = sign_of(number < 0, spec.sign);
  if (spec.alternate && base != 10) prefix += text("0", type);
  if (type == 'X') body = upper_case(body);
  if (spec.grouping) body = grouped(body, spec.grouping, base == 10 ? 3 : 4);
  return padded(budget, prefix, body, spec);
}

std::string real_digits(double magnitude, const FormatSpec& spec, char type) {
  if (spec.precision > max_precision)
    refuse(text("a precision of more than ", max_precision, " digits is not done here"));
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  std::string format = spec.alternate ? "%#.*" : "%.*";
  format += type;
  const double value = type == '%' ? magnitude * 100 : magnitude;
  if (type == '%') format.back() = 'f';
  std::string body(static_cast<std::size_t>(std::snprintf(nullptr, 0, format.c_str(), precision, value)) + 1, '\0');
  std::snprintf(body.data(), body.size(), format.c_str(), precision, value);
  body.pop_back();
  return type == '%' ? body + "%" : body;
}

std::string format_real(Budget* budget, double number, const FormatSpec& spec) {
  const bool negative = std::signbit(number) && !std::isnan(number);
  const double magnitude = std::abs(number);
  std::string body;
  if (!std::isfinite(number)) {
    body = std::isnan(number) ? "nan" : "inf";
    if (spec.type == 'F' || spec.type == 'E' || spec.type == 'G') body = upper_case(body);
    if (spec.type == '%') body += '%';
  } else if (!spec.type && spec.precision < 0) {
    body = show_real(magnitude);
  } else if (!spec.type) {
    body = real_digits(magnitude, spec, 'g');
    if (body.find_first_of(".e") == std::string::npos) body += ".0";
  } else {
    body = real_digits(magnitude, spec, spec.type == 'n' ? 'g' : spec.type);
  }
  if (spec.grouping) {
    const std::size_t end = std::min(body.find_first_not_of("0123456789"), body.size());
    body = grouped(body.substr(0, end), spec.grouping, 3) + body.substr(end);
  }
  return padded(budget, sign_of(negative, spec.sign), body, spec);
}

}  // namespace

std::string digits_of(std::uint64_t magnitude, int base) {
  char buffer[72];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr};
}

FormatSpec parse_format_spec(std::string_view rest) {
  FormatSpec spec;
  if (!rest.empty()) {
    const std::string_view first = first_character(rest);
    if (rest.size() > first.size() && is_align(rest[first.size()])) {
      spec.fill = first;
      spec.align = rest[first.size()];
      rest.remove_prefix(first.size() + 1);
    } else if (is_align(rest[0])) {
      spec.align = rest[0];
      rest.remove_prefix(1);
    }
  }
  const auto skip = [&](char c) {
    if (!rest.starts_with(c)) return false;
    rest.remove_prefix(1);
    return true;
  };
  for (const char sign : {'+', '-', ' '})
    if (skip(sign)) {
      spec.sign = sign;
      break;
    }
  spec.alternate = skip('#');
  if (skip('0') && !spec.align) {
    spec.fill = "0";
    spec.align = '=';
  }
  if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') spec.width = read_number(rest);
  for (const char separator : {',', '_'})
    if (skip(separator)) spec.grouping = separator;
  if (skip('.')) spec.precision = read_number(rest);
  if (!rest.empty()) {
    spec.type = rest[0];
    rest.remove_prefix(1);
  }
  if (!rest.empty()) fail("Invalid format specifier");
  return spec;
}

std::string padded(Budget* budget, const std::string& prefix, const std::string& body, const FormatSpec& spec) {
  const std::int64_t missing =
      spec.width - static_cast<std::int64_t>(count_characters(prefix) + count_characters(body));
  const std::int64_t left = missing <= 0 || spec.align == '<' ? 0 : spec.align == '^' ? missing / 2 : missing;
  const std::int64_t right = missing <= 0 ? 0 : missing - left;
  TextBuilder text(budget);
  if (spec.align == '=') text += prefix;
  text.add(spec.fill, left);
  if (spec.align != '=') text += prefix;
  text += body;
  return text.add(spec.fill, right).take();
}

std::string formatted(Budget* budget, const Value& value, const FormatSpec& given) {
  static constexpr std::string_view whole_types = "bcdoxXn", real_types = "eEfFgG%n";
  FormatSpec spec = given;
  const bool text_type = !spec.type || spec.type == 's';
  if (value.is(Kind::boolean) && text_type && spec.width == 0) return to_text(value);
  if (value.is_whole() && (!spec.type || whole_types.find(spec.type) != std::string_view::npos)) {
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    if (!spec.align) spec.align = '>';
    return format_whole(budget, value.integer(), spec);
  }
  if (value.is_number() && (!spec.type || real_types.find(spec.type) != std::string_view::npos)) {
    if (!spec.align) spec.align = '>';
    return format_real(budget, value.real(), spec);
  }
  if (!text_type || value.is_number() || spec.align == '=')
    fail(text("Unknown format code '", std::string(1, spec.type ? spec.type : '='), "' for object of type '",
              type_name(value), "'"));
  if (!value.is(Kind::string)) fail(text("unsupported format string passed to ", type_name(value), ".__format__"));
  if (!spec.align) spec.align = '<';
  const std::string& all = value.utf8();
  const std::size_t end = spec.precision < 0 ? all.size() : byte_of(all, static_cast<std::size_t>(spec.precision));
  return padded(budget, "", all.substr(0, end), spec);
}

}  // namespace zero::jinja
