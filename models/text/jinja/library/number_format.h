#pragma once
// Format specifications of % and of str.format. No LibTorch.
#include <cstdint>
#include <string>
#include <string_view>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;   // < > = ^, 0 if it was not given
  char sign = '-';  // + - or blank
  bool alternate = false;
  char grouping = 0;  // , or _
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 0;
};

/// Parses `[[fill]align][sign][#][0][width][,][.precision][type]`.
FormatSpec parse_format_spec(std::string_view text);

/// A number or a string by the specification. Fails if the type does not match.
std::string formatted(Budget* budget, const Value& value, const FormatSpec& spec);

/// Digits of a whole number in base 2, 8, 10 or 16, without a sign.
std::string digits_of(std::uint64_t magnitude, int base);

/// Pads to the width, which counts characters. `prefix` (sign, 0x) stays in front of '=' padding.
std::string padded(Budget* budget, const std::string& prefix, const std::string& body, const FormatSpec& spec);

}  // namespace zero::jinja
