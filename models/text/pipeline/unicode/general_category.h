#pragma once
// General categories of characters in Unicode 16, which define \p{L} and the like in regular expressions of Hugging
// Face's tokenizers 0.23. Debian's libraries only have Unicode 14 (Oniguruma 6.9.8) and 15 (ICU 72). Does not include
// LibTorch.
#include <string_view>
#include <utility>
#include <vector>

namespace zero {

/// The category as two letters, such as "Lu". Unassigned code points have "Cn".
std::string_view general_category(char32_t code);

/// True if the category begins with this letter: 'L', 'M', 'N', 'P', 'S', 'Z' or 'C'.
bool has_category(char32_t code, char major);

/// The first and last code points of all runs with a category ("Lu" or "L"), in ascending order. Empty for an unknown
/// name.
std::vector<std::pair<char32_t, char32_t>> ranges_of_category(std::string_view name);

}  // namespace zero
