#include "models/text/pipeline/unicode/byte_alphabet.h"

#include <array>

namespace zero {
namespace {

constexpr int last_character = 0x143;  // 256 and the number of bytes that are no printable characters of Latin-1

struct Alphabet {
  std::array<char32_t, 256> characters{};
  std::array<int, last_character + 1> bytes{};

  constexpr Alphabet() {
    for (int& byte : bytes) byte = -1;
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      characters[byte] = printable ? byte : next++;
      bytes[characters[byte]] = static_cast<int>(byte);
    }
  }
};
constexpr Alphabet alphabet;

}  // namespace

void append_byte_characters(std::string_view bytes, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + 2 * bytes.size());
  char* at = out.data() + begin;
  for (const char byte : bytes) {
    const char32_t code = alphabet.characters[static_cast<unsigned char>(byte)];
    if (code < 0x80) {
      *at++ = static_cast<char>(code);
    } else {
      *at++ = static_cast<char>(0xC0 | code >> 6);
      *at++ = static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  out.resize(static_cast<std::size_t>(at - out.data()));
}

int byte_of_character(char32_t code) { return code <= last_character ? alphabet.bytes[code] : -1; }

}  // namespace zero
