#pragma once
// Quotes text from files in messages.
#include <string>
#include <string_view>

namespace zero {

/// The text as a JSON string in quotes, on one line. Invalid UTF-8 becomes U+FFFD. (std::quoted keeps line breaks, and
/// argument-dependent lookup would find it for a std::string.)
std::string json_quoted(std::string_view text);

}  // namespace zero
