#pragma once
// General categories of characters, those of Unicode 16: what \p{L} and its like mean in the regular expressions of
// Hugging Face's tokenizers 0.23. Debian's libraries know Unicode 14 (Oniguruma 6.9.8) and 15 (ICU 72). No LibTorch.
#include <string_view>
#include <utility>
#include <vector>

namespace zero {

/// Two letters, "Lu"; "Cn" for what is no character.
std::string_view general_category(char32_t code);

/// Whether the category begins with this letter: 'L', 'M', 'N', 'P', 'S', 'Z' or 'C'.
bool has_category(char32_t code, char major);

/// First and last code points of all that have a category, "Lu" or "L", ascending; empty when there is none of that
/// name.
std::vector<std::pair<char32_t, char32_t>> ranges_of_category(std::string_view name);

}  // namespace zero
