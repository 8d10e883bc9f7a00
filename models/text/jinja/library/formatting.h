#pragma once
// Python's % and str.format on strings. Does not include LibTorch.
#include "models/text/jinja/library/library.h"

namespace zero::jinja {

/// `format % values`.
Value percent_format(Runtime& runtime, const Value& format, const Value& values);

/// `format.format(...)`. Fields may access attributes and items that the sandbox allows.
Value str_format(Runtime& runtime, const Value& format, const Arguments& arguments);

}  // namespace zero::jinja
