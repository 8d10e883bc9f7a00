#include "models/text/jinja/language/string_literal.h"

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/characters.h"

namespace zero::jinja {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

/// The number of exactly `count` hexadecimal digits.
char32_t hexadecimal(std::string_view body, std::size_t at, std::size_t count) {
  char32_t code = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (at + i >= body.size() || digit_of(body[at + i]) > 15)
      throw TemplateError(TemplateError::Kind::syntax, "a string has a broken \\x, \\u or \\U escape");
    code = code * 16 + static_cast<char32_t>(digit_of(body[at + i]));
  }
  if (code > 0x10FFFF) throw TemplateError(TemplateError::Kind::syntax, "a string has an escape that is no character");
  if (code >= 0xD800 && code < 0xE000) refuse("a string has an escape of half a surrogate pair, which is no text");
  return code;
}

}  // namespace

std::string unescape(std::string_view body) {
  static constexpr std::string_view names = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
  std::string result;
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      result += body[at++];
      continue;
    }
    const char c = body[at + 1];
    at += 2;
    if (const std::size_t known = names.find(c); known != std::string_view::npos) {
      result += meanings[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      append_character(hexadecimal(body, at, count), result);
      at += count;
    } else if (c >= '0' && c <= '7') {
      char32_t code = 0;
      --at;
      for (int i = 0; i < 3 && at < body.size() && digit_of(body[at]) < 8; ++i)
        code = code * 8 + static_cast<char32_t>(digit_of(body[at++]));
      append_character(code, result);
    } else if (c == 'N') {
      refuse("a string names a character by \\N, which is not done here: write \\u");
    } else if (c != '\n') {
      result += '\\';
      result += c;
    }
  }
  return result;
}

}  // namespace zero::jinja
