#pragma once
// Quotes text from files in messages.
#include <string>
#include <string_view>

namespace zero {

/// The text as a JSON string in quotes, on one line. Invalid UTF-8 becomes U+FFFD. (A function named quoted would be
/// ambiguous with std::quoted, which keeps line breaks.)
std::string json_quoted(std::string_view text);

}  // namespace zero
