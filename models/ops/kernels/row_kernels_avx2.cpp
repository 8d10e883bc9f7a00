// Compiled for x86-64-v3, like all the rest of the project.
#include "models/ops/kernels/row_kernels.h"

#include "models/ops/kernels/row_kernels.inl"

namespace zero::kernels {

template <>
const RowKernels<float>* row_kernels_avx2<float>() {
  return &all_kernels<float>;
}
template <>
const RowKernels<Bf16>* row_kernels_avx2<Bf16>() {
  return &all_kernels<Bf16>;
}

}  // namespace zero::kernels
