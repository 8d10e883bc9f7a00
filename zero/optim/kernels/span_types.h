#pragma once
// The number types of a span with fp32 masters, as C++ types, and its elements.
#include <type_traits>

#include "base/numbers/number_types.h"
#include "zero/optim/kernels/update_span.h"

namespace zero {

/// Calls f(std::type_identity<T>{}) for T fp32, bf16 or fp16. Returns null for other types.
template <class F>
auto with_narrow_type(Number number, const F& f) -> decltype(f(std::type_identity<float>{})) {
  if (number == Number::fp32) return f(std::type_identity<float>{});
  if (number == Number::bf16) return f(std::type_identity<Bf16>{});
  if (number == Number::fp16) return f(std::type_identity<Fp16>{});
  return nullptr;
}

/// Calls f with the types of a span's gradient and weights, as above; void stands for absent weights. Returns a
/// pointer, which is null if the span has another type.
template <class F>
auto with_types_of(const UpdateSpan& span, const F& f) {
  return with_narrow_type(number_of(span.gradient.scalar_type()), [&](auto gradient) {
    if (!span.weights.defined()) return f(gradient, std::type_identity<void>{});
    return with_narrow_type(number_of(span.weights.scalar_type()), [&](auto weights) { return f(gradient, weights); });
  });
}

/// The elements of a flat tensor from `begin` on.
template <class T>
T* elements_of(const at::Tensor& flat, std::int64_t begin = 0) {
  return static_cast<T*>(flat.data_ptr()) + begin;
}

}  // namespace zero
