#pragma once
// What kernels over rows share: numbers of any type as floats, vectors of them, launches. For .cu files alone.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "models/ops/cuda/row_launchers.h"

namespace zero::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

__device__ float load(float x) { return x; }
__device__ float load(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float load(__half x) { return __half2float(x); }
template <class T>
__device__ T store(float x);
template <>
__device__ float store<float>(float x) {
  return x;
}
template <>
__device__ __nv_bfloat16 store<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __half store<__half>(float x) {
  return __float2half_rn(x);
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

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// f(T{}) for the type of the rows.
template <class F>
void by_type(Number type, F f) {
  switch (type) {
    case Number::fp32:
      f(float{});
      break;
    case Number::bf16:
      f(__nv_bfloat16{});
      break;
    case Number::fp16:
      f(__half{});
      break;
    default:
      throw std::runtime_error("rows are fp32, bf16 or fp16");
  }
}

cudaStream_t stream_of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace
}  // namespace zero::cuda
