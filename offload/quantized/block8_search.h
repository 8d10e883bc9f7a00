#pragma once
// Block8Search: finds the nearest code of a Block8Map by arithmetic instead of a table of 2^16 entries, for use with
// vectors.
#include <array>
#include <cstdint>
#include <span>

namespace zero {

/// Codes are evenly spaced between one power of ten and the next. Within such a range a linear function of x gives the
/// number of midpoints below x. Rounding can make the result wrong only within `slack` of a whole number, where the
/// search leaves the decision open.
///
/// The search works on magnitudes |x|, with codes counted from the code of zero. A number's bin (its exponent, halved,
/// modulo 16) contains at most one border between powers.
struct Block8Search {
  static constexpr float smallest = 0x1p-31F;  // smaller numbers have the code of zero; the first bin begins here
  static constexpr float slack = 0x1p-14F;

  // By bin; infinity means no border.
  alignas(64) std::array<float, 16> border{};
  alignas(64) std::array<std::int32_t, 16> power{};  // by bin: power of numbers up to the border; the power above the
                                                     // border is one more
  // By power, each stored twice. The number of midpoints below x is min(highest, slope * x + offset), rounded to the
  // nearest integer. The result is not reliable if it lies more than 1/2 - 2 slack below the unrounded value.
  alignas(64) std::array<float, 16> slope{}, offset{}, highest{};

  Block8Search() = default;
  Block8Search(std::span<const float, 255> midpoints, bool is_signed);
};

}  // namespace zero
