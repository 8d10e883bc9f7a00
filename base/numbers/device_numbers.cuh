#pragma once
// Numbers of any type in the kernels of a GPU: from and to the type that they are computed in, and vectors of them. For .cu
// files alone.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace zero::cuda {

/// x as it is computed with: in fp32, or in S.
template <class S = float, class T>
__device__ S load(T x) {
  return static_cast<S>(x);
}
template <>
__device__ inline float load<float>(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <>
__device__ inline float load<float>(__half x) {
  return __half2float(x);
}
template <>
__device__ inline double load<double>(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <>
__device__ inline double load<double>(__half x) {
  return __half2float(x);
}

/// x rounded to T, ties to even.
template <class T, class S>
__device__ T store(S x) {
  return static_cast<T>(x);
}
template <>
__device__ inline __nv_bfloat16 store<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half store<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 store<__nv_bfloat16>(double x) {
  return __double2bfloat16(x);
}
template <>
__device__ inline __half store<__half>(double x) {
  return __double2half(x);
}

/// N elements that are read and written at once.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  static constexpr int size = N;
  T at[N];
};
/// 16 bytes of elements.
template <class T>
using Pack = Vector<T, 16 / sizeof(T)>;

}  // namespace zero::cuda
