#pragma once
// Stores fp32 numbers in 16 bits: either rounded stochastically to bf16, or split into a bf16 number and an exact
// 16-bit remainder. All functions work on bit patterns. U is std::uint32_t or a gcc vector of it, so they serve single
// numbers, vectors and GPU threads.
#include <cstdint>

#include "base/random.h"

namespace zero {

/// Rounds an fp32 bit pattern stochastically to bf16. The probability of rounding up is proportional to the distance
/// from the lower neighbour. The mean over all draws in [0, 2^16) is therefore the number itself. A bf16 value stays as
/// it is. A finite number stays finite: it saturates at the largest bf16. A NaN stays a NaN. The sign is kept.
template <class U>
constexpr U stochastic_bf16(U bits, U draw) {
  const U size = bits & 0x7FFFFFFFu, zeros = bits ^ bits;
  const U up = size < 0x7F7F0000u ? draw : zeros;  // the next number after the largest is infinity
  const U quiet = size > 0x7F800000u ? zeros + 0x40u : zeros;
  return ((bits + up) >> 16) | quiet;
}

/// The bf16 number nearest to an fp32 number. Ties round away from zero, because a tie that rounds down
/// leaves the remainder 2^15, which does not fit into 16 bits. A number that rounds beyond the largest bf16 becomes
/// infinity, as it does when ties round to even. A NaN stays a NaN.
template <class U>
constexpr U split_bf16(U bits) {
  const U quiet = (bits >> 16) | 0x40u, nearest = (bits + 0x8000u) >> 16;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : nearest;
}

/// The remainder of an fp32 number after split_bf16(), as 16-bit two's complement in [-2^15, 2^15). For a NaN it is 0.
template <class U>
constexpr U split_remainder(U bits) {
  const U zeros = bits ^ bits, low = bits & 0xFFFFu;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? zeros : low;
}

/// Restores the fp32 number from both parts exactly. A NaN stays a NaN. `remainder` holds the remainder in its lower 16
/// bits.
template <class U>
constexpr U joined_fp32(U bf16, U remainder) {
  return (bf16 << 16) + remainder - ((remainder & 0x8000u) << 1);
}

/// Stochastic rounding draws Philox numbers (base/philox.h), with a key made from the seed and the step. Each state of
/// a tensor has a stream. Element 64 g + 16 w + 8 h + l of the tensor takes its draw from block 8 g + l of that stream.
/// The draw is the lower (h = 0) or upper (h = 1) half of word w.
inline constexpr int drawn_elements = 64;
constexpr std::uint64_t rounding_key(std::uint64_t seed, std::uint64_t step) {
  return mix_seed(mix_seed(seed, 0x726F756E64u), step);
}

}  // namespace zero
