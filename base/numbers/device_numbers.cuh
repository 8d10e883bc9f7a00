#pragma once
// Numbers of any type in GPU kernels: conversion to and from the type that they are computed in, and vectors. For .cu
// files only.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace zero::cuda {

/// Converts x to the type it is computed in: fp32, or S.
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

/// N elements, read and written at once.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  static constexpr int size = N;
  T at[N];
};
/// 16 bytes of elements.
template <class T>
using Pack = Vector<T, 16 / sizeof(T)>;

}  // namespace zero::cuda
