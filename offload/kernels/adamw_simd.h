#pragma once
// The inner loop of AdamW, written once over a vector type and compiled per instruction set. Included only by the
// adamw_*.cpp files, which have compile flags of their own; see lanes_scalar.h.
#include <cstdint>

#include "offload/kernels/lanes_scalar.h"

namespace zero::kernels {

/// The per-step constants in the states' type.
template <class State>
struct Constants {
  State gradient_scale, keep, one_minus_beta1, beta2, one_minus_beta2, step_size, inverse_root_bias2, eps;
};

template <class State>
struct Pointers {
  State* master;
  State* m;
  State* v;
  const void* gradient;
  void* weights;
};

/// Updates n elements; weights of type `none` are not written. Weights beyond the caches are written past them when
/// `stream` is set.
using UpdateF32 = void (*)(const Pointers<float>&, const Constants<float>&, std::int64_t n, bool stream);
using UpdateF64 = void (*)(const Pointers<double>&, const Constants<double>&, std::int64_t n, bool stream);

/// Null for a combination that is not there.
UpdateF32 scalar_f32(Number gradient, Number weights);
UpdateF32 avx2_f32(Number gradient, Number weights);
UpdateF32 avx512_f32(Number gradient, Number weights);
UpdateF64 scalar_f64(Number gradient, Number weights);

namespace {

template <class V, Number gradient, Number weights, bool stream>
inline void update_lanes(const Pointers<typename V::State>& at, const Constants<V>& c, std::int64_t i) {
  const V g = mul(V::template load<gradient>(at.gradient, i), c.gradient_scale);
  V m = V::template load<V::state_number>(at.m, i);
  V v = V::template load<V::state_number>(at.v, i);
  V p = V::template load<V::state_number>(at.master, i);
  m = fma(sub(g, m), c.one_minus_beta1, m);
  v = fma(v, c.beta2, mul(mul(g, g), c.one_minus_beta2));
  const V denominator = fma(sqrt(v), c.inverse_root_bias2, c.eps);
  p = sub(mul(p, c.keep), div(mul(m, c.step_size), denominator));
  V::template store<V::state_number>(at.m, i, m);
  V::template store<V::state_number>(at.v, i, v);
  V::template store<V::state_number>(at.master, i, p);
  if constexpr (weights != Number::none) {
    if constexpr (stream) {
      V::template store_past_cache<weights>(at.weights, i, p);
    } else {
      V::template store<weights>(at.weights, i, p);
    }
  }
}

template <class V>
inline Constants<V> broadcast_all(const Constants<typename V::State>& c) {
  return {V::broadcast(c.gradient_scale),     V::broadcast(c.keep),
          V::broadcast(c.one_minus_beta1),    V::broadcast(c.beta2),
          V::broadcast(c.one_minus_beta2),    V::broadcast(c.step_size),
          V::broadcast(c.inverse_root_bias2), V::broadcast(c.eps)};
}

/// The vector loop, then the rest lane by lane with the scalar type: the same operations in the same order.
template <class V, class Scalar, Number gradient, Number weights>
void update(const Pointers<typename V::State>& at, const Constants<typename V::State>& c, std::int64_t n, bool stream) {
  std::int64_t i = 0;
  if constexpr (V::width > 1) {
    const Constants<V> cv = broadcast_all<V>(c);
    const bool aligned = reinterpret_cast<std::uintptr_t>(at.weights) % 64 == 0;
    if (weights != Number::none && stream && aligned) {
      for (; i + V::width <= n; i += V::width) update_lanes<V, gradient, weights, true>(at, cv, i);
    } else {
      for (; i + V::width <= n; i += V::width) update_lanes<V, gradient, weights, false>(at, cv, i);
    }
  }
  const Constants<Scalar> cs = broadcast_all<Scalar>(c);
  for (; i < n; ++i) update_lanes<Scalar, gradient, weights, false>(at, cs, i);
}

template <class V, class Scalar, Number gradient>
UpdateF32 pick_weights(Number weights) {
  switch (weights) {
    case Number::none:
      return &update<V, Scalar, gradient, Number::none>;
    case Number::f32:
      return &update<V, Scalar, gradient, Number::f32>;
    case Number::bf16:
      return &update<V, Scalar, gradient, Number::bf16>;
    case Number::f16:
      return &update<V, Scalar, gradient, Number::f16>;
    default:
      return nullptr;
  }
}

template <class V, class Scalar>
UpdateF32 pick(Number gradient, Number weights) {
  switch (gradient) {
    case Number::f32:
      return pick_weights<V, Scalar, Number::f32>(weights);
    case Number::bf16:
      return pick_weights<V, Scalar, Number::bf16>(weights);
    case Number::f16:
      return pick_weights<V, Scalar, Number::f16>(weights);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace zero::kernels
