#pragma once
// Parses a template's statements and expressions like jinja2 3.1's parser with loop controls and transformers'
// generation blocks. Does not include LibTorch.
#include <string_view>

#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

/// Throws TemplateError with the line. Its kind is `syntax`, or `refused` for tags that need other files (include,
/// import, extends), or `bound` for nesting that is too deep.
Syntax parse(std::string_view source);

}  // namespace zero::jinja
