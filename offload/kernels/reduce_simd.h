#pragma once
// Inner loops of packing and of the norm, written over a vector type and compiled per instruction set; see
// lanes_scalar.h.
#include <cstdint>

#include "offload/kernels/lanes_scalar.h"

namespace zero::kernels {

/// Lanes of the sum of squares: element i of a block is added to lane i % norm_lanes, in order.
inline constexpr int norm_lanes = 32;

/// destination = source, or destination + source rounded once; conversions to nearest even.
using Pack = void (*)(void* destination, const void* source, std::int64_t n);
/// Adds the squares of n elements to norm_lanes sums in fp64.
using Squares = void (*)(const void* source, std::int64_t n, double* lanes);

/// Null for f64, which the scalar functions serve.
Pack scalar_pack(Number destination, Number source, bool accumulate);
Pack avx2_pack(Number destination, Number source, bool accumulate);
Pack avx512_pack(Number destination, Number source, bool accumulate);
Squares scalar_squares(Number source);
Squares avx2_squares(Number source);
Squares avx512_squares(Number source);

namespace {

template <class V, Number to, Number from, bool accumulate>
inline void pack_lanes(void* destination, const void* source, std::int64_t i) {
  V value = V::template load<from>(source, i);
  if constexpr (accumulate) value = add(V::template load<to>(destination, i), value);
  V::template store<to>(destination, i, value);
}

template <class V, class Scalar, Number to, Number from, bool accumulate>
void pack_all(void* destination, const void* source, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + V::width <= n; i += V::width) pack_lanes<V, to, from, accumulate>(destination, source, i);
  for (; i < n; ++i) pack_lanes<Scalar, to, from, accumulate>(destination, source, i);
}

template <class V, class Scalar, Number to>
Pack pick_pack(Number from, bool accumulate) {
  switch (from) {
    case Number::f32:
      return accumulate ? &pack_all<V, Scalar, to, Number::f32, true> : &pack_all<V, Scalar, to, Number::f32, false>;
    case Number::bf16:
      return accumulate ? &pack_all<V, Scalar, to, Number::bf16, true> : &pack_all<V, Scalar, to, Number::bf16, false>;
    case Number::f16:
      return accumulate ? &pack_all<V, Scalar, to, Number::f16, true> : &pack_all<V, Scalar, to, Number::f16, false>;
    default:
      return nullptr;
  }
}

template <class V, class Scalar>
Pack pick_pack(Number to, Number from, bool accumulate) {
  switch (to) {
    case Number::f32:
      return pick_pack<V, Scalar, Number::f32>(from, accumulate);
    case Number::bf16:
      return pick_pack<V, Scalar, Number::bf16>(from, accumulate);
    case Number::f16:
      return pick_pack<V, Scalar, Number::f16>(from, accumulate);
    default:
      return nullptr;
  }
}

/// The last, incomplete row of lanes.
template <Number from>
inline void squares_rest(const void* source, std::int64_t begin, std::int64_t n, double* lanes) {
  for (std::int64_t i = begin; i < n; ++i) {
    const double x = Lane<double>::load<from>(source, i).x;
    lanes[i - begin] = __builtin_fma(x, x, lanes[i - begin]);
  }
}

template <Number from>
void squares_by_lane(const void* source, std::int64_t n, double* lanes) {
  std::int64_t i = 0;
  for (; i + norm_lanes <= n; i += norm_lanes) {
    for (int lane = 0; lane < norm_lanes; ++lane) {
      const double x = Lane<double>::load<from>(source, i + lane).x;
      lanes[lane] = __builtin_fma(x, x, lanes[lane]);
    }
  }
  squares_rest<from>(source, i, n, lanes);
}

}  // namespace
}  // namespace zero::kernels
