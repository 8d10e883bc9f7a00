#pragma once
// Parses statements and expressions of a template, as jinja2 3.1's parser does with the loop controls and transformers'
// generation blocks. No LibTorch.
#include <string_view>

#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

/// Throws TemplateError with the line. Its kind is syntax, refused for tags that need other files (include, import,
/// extends), or bound for too deep nesting.
Syntax parse(std::string_view source);

}  // namespace zero::jinja
