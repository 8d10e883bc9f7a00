#pragma once
// The format specifications of % and str.format. Does not include LibTorch.
#include <cstdint>
#include <string>
#include <string_view>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;   // < > = ^, or 0 if not given
  char sign = '-';  // + - or blank
  bool alternate = false;
  char grouping = 0;  // , or _
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 0;
};

/// Parses `[[fill]align][sign][#][0][width][,][.precision][type]`.
FormatSpec parse_format_spec(std::string_view text);

/// Formats a number or a string. Fails if the value does not match the specification's type.
std::string formatted(Budget* budget, const Value& value, const FormatSpec& spec);

/// The digits of an integer in base 2, 8, 10 or 16, without a sign.
std::string digits_of(std::uint64_t magnitude, int base);

/// Pads to the width, which is in characters. With '=' alignment, `prefix` (sign, 0x) precedes the padding.
std::string padded(Budget* budget, const std::string& prefix, const std::string& body, const FormatSpec& spec);

}  // namespace zero::jinja
