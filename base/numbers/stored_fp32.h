#pragma once
// Fp32 numbers in 16 bits for storage, by their bits: rounded to bf16 at random, or split into a bf16 number and an exact
// remainder. For single numbers, vectors of gcc's and threads of a GPU alike: U is std::uint32_t, or a vector of it.
#include <cstdint>

#include "base/random.h"

namespace zero {

/// The bits of bf16 for those of fp32, rounded up with a chance of its distance to the lower neighbour: the mean over all
/// draws in [0, 2^16) is the number itself. What bf16 holds stays as it is; a finite number stays finite, beyond the
/// largest one of bf16 is that; a NaN stays a NaN. Signs stay.
template <class U>
constexpr U stochastic_bf16(U bits, U draw) {
  const U size = bits & 0x7FFFFFFFu, zeros = bits ^ bits;
  const U up = size < 0x7F7F0000u ? draw : zeros;  // behind the largest number stands infinity
  const U quiet = size > 0x7F800000u ? zeros + 0x40u : zeros;
  return ((bits + up) >> 16) | quiet;
}

/// The bf16 number nearest to an fp32 one, of two equally near the one away from zero: ties to even could not be told from
/// a remainder of 16 bits. What rounds beyond the largest number is infinity, as in rounding to even. A NaN stays a NaN.
template <class U>
constexpr U split_bf16(U bits) {
  const U quiet = (bits >> 16) | 0x40u, nearest = (bits + 0x8000u) >> 16;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : nearest;
}

/// The lower 16 bits of what an fp32 number is beyond split_bf16() of it, two's complement in [-2^15, 2^15); of a NaN 0.
template <class U>
constexpr U split_remainder(U bits) {
  const U zeros = bits ^ bits, low = bits & 0xFFFFu;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? zeros : low;
}

/// The fp32 number of the two parts, to the last bit (of a NaN: a NaN). `remainder`: its lower 16 bits.
template <class U>
constexpr U joined_fp32(U bf16, U remainder) {
  return (bf16 << 16) + remainder - ((remainder & 0x8000u) << 1);
}

/// Draws of stochastic rounding: Philox's numbers (base/philox.h) under a key of seed and step, whose stream is a state of a
/// tensor. Block 8 g + l of the stream has the draws of elements 64 g + 16 w + 8 h + l of that tensor: the lower (h = 0)
/// and the upper half of its words w.
inline constexpr int drawn_elements = 64;
constexpr std::uint64_t rounding_key(std::uint64_t seed, std::uint64_t step) {
  return mix_seed(mix_seed(seed, 0x726F756E64u), step);
}

}  // namespace zero
