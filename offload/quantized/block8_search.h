#pragma once
// Block8Search: finds the nearest code of a Block8Map by arithmetic instead of a table of 2^16, for vectors.
#include <array>
#include <cstdint>
#include <span>

namespace zero {

/// Codes are evenly spaced between one power of ten and the next. There a line through the midpoints gives the number
/// of midpoints below a value. Rounding can make it wrong only within `slack` of whole numbers, where it leaves the
/// decision open.
///
/// It works on sizes |x| and codes counted from zero's. The bin of a number (its exponent, halved, modulo 16) holds at
/// most one border between powers.
struct Block8Search {
  static constexpr float smallest = 0x1p-31F;  // smaller numbers have zero's code; the first bin begins here
  static constexpr float slack = 0x1p-14F;

  // By bin; infinity means no border.
  alignas(64) std::array<float, 16> border{};
  alignas(64) std::array<std::int32_t, 16> power{};  // by bin: power of numbers up to the border; larger ones have the
                                                     // next power
  // By power, twice. The number of midpoints below x is the whole number nearest to min(highest, slope * x + offset).
  // It is not reliable if that number lies more than 1/2 - 2 slack below.
  alignas(64) std::array<float, 16> slope{}, offset{}, highest{};

  Block8Search() = default;
  Block8Search(std::span<const float, 255> midpoints, bool is_signed);
};

}  // namespace zero
