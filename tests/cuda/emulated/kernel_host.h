#pragma once
// Compiles a .cu file for the host. The threads of a block are fibers of one thread, and blocks run one after the
// other. The build rewrites a launch f<<<...>>>(x) to Launch(...) << [=] { f(x); }, and rewrites __shared__ arrays, of
// which a line may have one. It includes this file first.
//
// A block's threads run one after the other. A warp runs from one __syncthreads() to the next before another warp runs,
// in an order that changes from launch to launch. The result of a kernel differs if it reads a value before another
// thread writes it, or overwrites a value before another warp reads it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace zero::emulated {

/// Indices of the running fiber.
struct Coordinates {
  uint3 thread{}, block{};
  dim3 threads, blocks;
};
Coordinates& coordinates();

void sync_threads();
/// Returns the value that lane `lane ^ mask` of the same warp passes in the same call.
std::uint64_t exchange(std::uint64_t value, int mask);
/// shared_bytes(): the launch's dynamic shared memory. share() adds an array that all threads of a block share. Both
/// are NaN when the block begins.
void* shared_bytes();
void share(void* array, std::size_t bytes);

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(shared_bytes());
}

/// Launch(blocks, threads, shared bytes, stream) << body: runs the body once per thread, when its turn in the stream
/// comes.
class Launch {
 public:
  Launch(dim3 blocks, dim3 threads, std::size_t shared = 0, cudaStream_t stream = nullptr)
      : blocks_(blocks), threads_(threads), shared_(shared), stream_(stream) {}
  void operator<<(std::function<void()> body) const;

  dim3 blocks() const { return blocks_; }
  dim3 threads() const { return threads_; }
  std::size_t shared() const { return shared_; }

 private:
  dim3 blocks_, threads_;
  std::size_t shared_;
  cudaStream_t stream_;
};

}  // namespace zero::emulated

#undef __global__
#undef __device__
#undef __launch_bounds__
#define __global__
#define __device__
#define __launch_bounds__(...)
#define threadIdx (::zero::emulated::coordinates().thread)
#define blockIdx (::zero::emulated::coordinates().block)
#define blockDim (::zero::emulated::coordinates().threads)
#define gridDim (::zero::emulated::coordinates().blocks)
#define __syncthreads ::zero::emulated::sync_threads

inline float __shfl_xor_sync(unsigned, float value, int mask) {
  return __builtin_bit_cast(
      float, static_cast<std::uint32_t>(::zero::emulated::exchange(__builtin_bit_cast(std::uint32_t, value), mask)));
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }
using std::fma, std::isfinite, std::sqrt;
