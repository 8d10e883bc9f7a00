#pragma once
// Block8Search: the nearest code of a Block8Map by arithmetic instead of a table of 2^16, for vectors.
#include <array>
#include <cstdint>
#include <span>

namespace zero {

/// Codes lie evenly between one power of ten and the next: there a line through the midpoints tells how many of them
/// are below a number. By rounding it is wrong within `slack` of whole numbers alone: nothing is decided there.
///
/// For sizes |x| and codes counted from zero's. A number's bin (its exponent, halved, modulo 16) holds one border
/// between powers at most.
struct Block8Search {
  static constexpr float smallest = 0x1p-31F;  // and below: zero's code; the first bin begins here
  static constexpr float slack = 0x1p-14F;

  // By bin; infinity: no border.
  alignas(64) std::array<float, 16> border{};
  alignas(64) std::array<std::int32_t, 16> power{};  // of numbers at or below the border; above it is the next
  // By power, twice: of min(highest, slope * x + offset) the nearest whole number tells how many midpoints are below x,
  // unless that number lies more than 1/2 - 2 slack below.
  alignas(64) std::array<float, 16> slope{}, offset{}, highest{};

  Block8Search() = default;
  Block8Search(std::span<const float, 255> midpoints, bool is_signed);
};

}  // namespace zero
