#include "base/utf8.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace zero {

std::string_view first_character(std::string_view text) {
  // Never empty: callers advance by its length.
  return text.substr(0, std::max<std::size_t>(1, utf8_length(static_cast<unsigned char>(text.front()))));
}

std::string_view last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && utf8_continues(text[begin])) --begin;
  return text.substr(begin);
}

char32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  char32_t code = first & (0x7Fu >> character.size());
  for (const char byte : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  return code;
}

void Utf8Check::add(std::string_view part) {
  const char* const begin = part.data();
  const char* const end = begin + part.size();
  for (const char* at = begin; at != end; ++at) {
    if (missing_ == 0) {  // skip eight bytes of non-zero ASCII at once
      constexpr std::uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
      std::uint64_t word = 0;
      while (end - at > 8 && (std::memcpy(&word, at, 8), ((word | (word - ones)) & tops) == 0)) at += 8;
    }
    const auto byte = static_cast<unsigned char>(*at);
    const std::int64_t offset = offset_ + (at - begin);
    if (missing_ > 0) {
      if (byte < low_ || byte > high_) refuse(begun_, first_);
      low_ = 0x80;
      high_ = 0xBF;
      --missing_;
      continue;
    }
    const std::size_t length = utf8_length(byte);
    if (length == 0 || byte == 0) refuse(offset, byte);
    missing_ = length - 1;
    begun_ = offset;
    first_ = byte;
    // excludes overlong forms, surrogates and code points above U+10FFFF
    low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
  }
  offset_ += static_cast<std::int64_t>(part.size());
}

void Utf8Check::finish() const {
  if (missing_ > 0)
    throw InputError(text(place_, ": ends at byte ", offset_, " inside a character of UTF-8; was the text cut short?"));
}

void Utf8Check::refuse(std::int64_t offset, unsigned char byte) const {
  char hex[8];
  std::snprintf(hex, sizeof hex, "0x%02X", byte);
  if (byte == 0)
    throw InputError(text(
        place_, ": byte ", offset,
        " is zero, which no text holds: is it UTF-16 or a binary file? Convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"));
  const bool utf16 = offset == 0 && byte >= 0xFE;
  throw InputError(text(place_, ": byte ", offset, " (", hex, ") is not UTF-8: convert the text to UTF-8 (iconv -f ",
                        utf16 ? "UTF-16" : "LATIN1", " -t UTF-8", utf16 ? ")" : ", or whatever it is written in)"));
}

void require_utf8(std::string_view text, const std::string& place) {
  Utf8Check check(place);
  check.add(text);
  check.finish();
}

bool is_utf8(std::string_view text) {
  try {
    require_utf8(text, "");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace zero
