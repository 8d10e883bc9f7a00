#pragma once
// The 256 characters that represent bytes in byte-level tokenizers (openai/gpt-2, src/encoder.py). Does not include
// LibTorch.
#include <string>
#include <string_view>

namespace zero {

/// Appends the character that represents each byte, as UTF-8.
void append_byte_characters(std::string_view bytes, std::string& out);

/// The byte that a character represents, or -1 if it represents none.
int byte_of_character(char32_t code);

}  // namespace zero
