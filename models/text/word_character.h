#pragma once
// The two classes of characters that decide where an added token matches. Does not include LibTorch.

namespace zero {

/// Unicode's \w: letters, marks, decimal digits, connecting punctuation and joiners.
bool is_word_character(char32_t code);

/// Unicode's White_Space.
bool is_white_space(char32_t code);

}  // namespace zero
