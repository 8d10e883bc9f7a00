#pragma once
// Quotes texts of files in messages.
#include <string>
#include <string_view>

namespace zero {

/// The text in quotes, in JSON's form, on one line. Invalid UTF-8 becomes U+FFFD. (std::quoted keeps line breaks, and
/// argument-dependent lookup would find it for a std::string.)
std::string json_quoted(std::string_view text);

}  // namespace zero
