#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

namespace {
template <class T>
const RowKernels<T>& best() {
  static const RowKernels<T>* const chosen = row_kernels_avx512<T>() ? row_kernels_avx512<T>() : row_kernels_avx2<T>();
  return *chosen;
}
}  // namespace

template <>
const RowKernels<float>& row_kernels<float>() {
  return best<float>();
}
template <>
const RowKernels<Bf16>& row_kernels<Bf16>() {
  return best<Bf16>();
}

}  // namespace zero::kernels
