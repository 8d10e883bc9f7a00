#pragma once
// Texts of files in messages.
#include <string>
#include <string_view>

namespace zero {

/// The text in quotes, as JSON has it; what is no UTF-8 becomes U+FFFD.
std::string quoted(std::string_view text);

}  // namespace zero
