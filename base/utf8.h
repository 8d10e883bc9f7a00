#pragma once
// UTF-8: its characters, and a check of texts that arrive in parts. Does not include LibTorch.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zero {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The length in bytes of the character that begins with this byte. 0 if no character can begin with it.
constexpr std::size_t utf8_length(unsigned char first) {
  return first < 0x80                    ? 1
         : first >= 0xC2 && first < 0xE0 ? 2
         : first >= 0xE0 && first < 0xF0 ? 3
         : first >= 0xF0 && first < 0xF5 ? 4
                                         : 0;
}

/// True if a byte continues a character.
constexpr bool utf8_continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// The bytes of the first and the last character of a non-empty text. A byte that begins no character counts as a
/// character.
std::string_view first_character(std::string_view text);
std::string_view last_character(std::string_view text);

/// The code point of one character.
char32_t code_point(std::string_view character);

/// Rejects invalid UTF-8: surrogates, overlong forms, broken characters. A text may arrive in parts that split
/// anywhere. Zero bytes are rejected because UTF-16 and binary files have them, and text does not.
class Utf8Check {
 public:
  /// Messages begin with `place`. `offset` is the offset of the next byte.
  explicit Utf8Check(std::string place, std::int64_t offset = 0) : place_(std::move(place)), offset_(offset) {}

  /// Checks the next bytes. Throws InputError with the place and the offset, from 0, of the first byte that begins no
  /// character.
  void add(std::string_view part);

  /// Ends the text. Throws InputError if the text ends inside a character.
  void finish() const;

 private:
  [[noreturn]] void refuse(std::int64_t offset, unsigned char byte) const;

  std::string place_;
  std::int64_t offset_;                     // offset of the next byte
  std::size_t missing_ = 0;                 // missing bytes of the current character
  std::int64_t begun_ = 0;                  // offset of that character
  unsigned char first_ = 0;                 // its first byte
  unsigned char low_ = 0x80, high_ = 0xBF;  // bounds of its next byte
};

/// Checks a whole text: calls add() and finish().
void require_utf8(std::string_view text, const std::string& place);
/// True if require_utf8() accepts the text.
bool is_utf8(std::string_view text);

}  // namespace zero
