#pragma once
// Whether statements use a name before they set it themselves. jinja2 asks this for `loop`, `caller`, `varargs` and
// `kwargs`. No LibTorch.
#include <string_view>

#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

bool uses_name(const Block& block, std::string_view name);

}  // namespace zero::jinja
