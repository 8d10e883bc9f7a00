#pragma once
// Checks if statements use a name before they set it. jinja2 needs to know this for `loop`, `caller`, `varargs` and
// `kwargs`. Does not include LibTorch.
#include <string_view>

#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

bool uses_name(const Block& block, std::string_view name);

}  // namespace zero::jinja
