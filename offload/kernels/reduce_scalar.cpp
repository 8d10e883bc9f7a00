#include "offload/kernels/reduce_simd.h"

namespace zero::kernels {
namespace {

using D = Lane<double>;

template <Number to, Number from>
Pack pick_f64(bool accumulate) {
  return accumulate ? &pack_all<D, D, to, from, true> : &pack_all<D, D, to, from, false>;
}

}  // namespace

Pack scalar_pack(Number to, Number from, bool accumulate) {
  if (to == Number::f64 && from == Number::f64) return pick_f64<Number::f64, Number::f64>(accumulate);
  if (to == Number::f64 && from == Number::f32) return pick_f64<Number::f64, Number::f32>(accumulate);
  if (to == Number::f32 && from == Number::f64) return pick_f64<Number::f32, Number::f64>(accumulate);
  return pick_pack<Lane<float>, Lane<float>>(to, from, accumulate);
}

Squares scalar_squares(Number from) {
  switch (from) {
    case Number::f32:
      return &squares_by_lane<Number::f32>;
    case Number::bf16:
      return &squares_by_lane<Number::bf16>;
    case Number::f16:
      return &squares_by_lane<Number::f16>;
    case Number::f64:
      return &squares_by_lane<Number::f64>;
    default:
      return nullptr;
  }
}

}  // namespace zero::kernels
