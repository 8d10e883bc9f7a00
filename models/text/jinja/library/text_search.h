#pragma once
// Text searches that methods and filters share. Does not include LibTorch.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

/// str.splitlines.
std::vector<std::string_view> lines_of(Budget& budget, std::string_view text, bool keep_ends);

/// str.replace, at most `most` times, or all if it is negative.
std::string replaced(Budget* budget, std::string_view text, std::string_view old, std::string_view fresh,
                     std::int64_t most);

}  // namespace zero::jinja
