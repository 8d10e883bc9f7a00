#pragma once
// Inner loops of packing and of the norm, compiled once per processor kind. They use plain pointers and no LibTorch.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero {

/// Sums of squares: element i of a block is added to sum i % norm_sums, in order.
inline constexpr int norm_sums = 32;

/// Adds the squares of n elements to norm_sums sums in fp64.
using SquaresLoop = void (*)(const void* source, std::int64_t n, double* sums);
/// Returns the fastest loop that this machine supports.
SquaresLoop squares_loop(Number source);

/// destination = source, or destination + source rounded once. Conversions round to nearest even.
using PackLoop = void (*)(void* destination, const void* source, std::int64_t n);
/// Returns null for an unsupported combination: fp64 with a 16-bit type.
PackLoop pack_loop(Number destination, Number source, bool accumulate);

}  // namespace zero
