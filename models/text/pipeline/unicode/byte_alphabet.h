#pragma once
// The 256 characters by which byte-level tokenizers write bytes (openai/gpt-2, src/encoder.py). No LibTorch.
#include <string>
#include <string_view>

namespace zero {

/// Appends the character of every byte, as UTF-8.
void append_byte_characters(std::string_view bytes, std::string& out);

/// The byte of a character; -1 where it stands for none.
int byte_of_character(char32_t code);

}  // namespace zero
