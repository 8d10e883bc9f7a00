// Compiled for AVX-512 (see CMakeLists.txt): nothing of this file may run before the machine was asked.
#include "models/ops/kernels/row_kernels.h"

#include "models/ops/kernels/row_kernels.inl"

namespace zero::kernels {

namespace {
bool runs_here() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
}  // namespace

template <>
const RowKernels<float>* row_kernels_avx512<float>() {
  return runs_here() ? &all_kernels<float> : nullptr;
}
template <>
const RowKernels<Bf16>* row_kernels_avx512<Bf16>() {
  return runs_here() ? &all_kernels<Bf16> : nullptr;
}

}  // namespace zero::kernels
