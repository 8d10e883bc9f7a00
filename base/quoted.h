#pragma once
// Texts of files in messages.
#include <string>
#include <string_view>

namespace zero {

/// The text in quotes, as JSON has it, on one line; what is no UTF-8 becomes U+FFFD. (std::quoted keeps line breaks, and
/// argument-dependent lookup would find it for a std::string.)
std::string json_quoted(std::string_view text);

}  // namespace zero
