#pragma once
// Resolves Python's escapes in the body of a string literal. Does not include LibTorch.
#include <string>
#include <string_view>

namespace zero::jinja {

/// Throws TemplateError: of kind `syntax` for a broken escape, and of kind `refused` for \N{...} and lone surrogates.
std::string unescape(std::string_view body);

}  // namespace zero::jinja
