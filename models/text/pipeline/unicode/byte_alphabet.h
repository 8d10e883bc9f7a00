#pragma once
// The 256 characters that represent bytes in byte-level tokenizers (openai/gpt-2, src/encoder.py). No LibTorch.
#include <string>
#include <string_view>

namespace zero {

/// Appends the character of every byte, as UTF-8.
void append_byte_characters(std::string_view bytes, std::string& out);

/// The byte of a character, or -1.
int byte_of_character(char32_t code);

}  // namespace zero
