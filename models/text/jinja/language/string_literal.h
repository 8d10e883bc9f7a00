#pragma once
// The body of a string literal with Python's escapes resolved. No LibTorch.
#include <string>
#include <string_view>

namespace zero::jinja {

/// TemplateError of kind syntax for a broken escape, of kind refused for \N{...} and lone surrogates.
std::string unescape(std::string_view body);

}  // namespace zero::jinja
