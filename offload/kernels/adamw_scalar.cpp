#include "offload/kernels/adamw_simd.h"
#include "offload/kernels/lanes_scalar.h"

namespace zero::kernels {
namespace {

using D = Lane<double>;

template <Number gradient>
UpdateF64 pick_weights_f64(Number weights) {
  switch (weights) {
    case Number::none:
      return &update<D, D, gradient, Number::none>;
    case Number::f32:
      return &update<D, D, gradient, Number::f32>;
    case Number::f64:
      return &update<D, D, gradient, Number::f64>;
    default:
      return nullptr;
  }
}

}  // namespace

UpdateF32 scalar_f32(Number gradient, Number weights) { return pick<Lane<float>, Lane<float>>(gradient, weights); }

UpdateF64 scalar_f64(Number gradient, Number weights) {
  if (gradient == Number::f64) return pick_weights_f64<Number::f64>(weights);
  if (gradient == Number::f32) return pick_weights_f64<Number::f32>(weights);
  return nullptr;
}

}  // namespace zero::kernels
