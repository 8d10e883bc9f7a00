#pragma once
// Statements and expressions of a template, as jinja2 3.1's parser with the loop controls and transformers' generation
// blocks reads them. No LibTorch.
#include <string_view>

#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

/// TemplateError with the line: of kind syntax, of kind refused for what templates of other files need (include,
/// import, extends), of kind bound for what is nested too deeply.
Syntax parse(std::string_view source);

}  // namespace zero::jinja
