#pragma once
// The two classes of characters that decide where an added token matches. No LibTorch.

namespace zero {

/// \w of Unicode: letters, marks, decimal digits, connecting punctuation, joiners.
bool is_word_character(char32_t code);

/// White_Space of Unicode.
bool is_white_space(char32_t code);

}  // namespace zero
