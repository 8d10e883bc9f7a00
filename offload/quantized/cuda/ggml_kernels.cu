// Compiled without fused multiply-add, so the bits equal the CPU's.
#include "offload/quantized/cuda/ggml_kernels.h"

#include <stdexcept>
#include <string>

#include "base/numbers/device_numbers.cuh"

namespace zero::cuda {
namespace {

constexpr int threads = 256;
constexpr int block_values = 32;
constexpr int f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30;  // of enum ggml_type; else Q4_0
constexpr int q4_bytes = 18, q8_bytes = 34;

/// The last run that starts at or before the block.
__device__ int run_of(const GgmlDecodeJob& job, std::int64_t block) {
  int low = 0;
  for (int high = job.count; high - low > 1;) {
    const int middle = (low + high) / 2;
    if (job.runs[middle].first <= block)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// Value i of a block in a type of ggml. Blocks of a run are aligned to 2 bytes, as their scales are.
__device__ float value_of(const GgmlRun& run, const std::uint8_t* start, std::int64_t block, int i) {
  const std::int64_t element = block * block_values + i;
  if (run.type == f32) return reinterpret_cast<const float*>(start)[element];
  if (run.type == f16) return __half2float(reinterpret_cast<const __half*>(start)[element]);
  if (run.type == bf16) return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(start)[element]);
  const std::uint8_t* in = start + block * (run.type == q8_0 ? q8_bytes : q4_bytes);
  const float scale = __half2float(*reinterpret_cast<const __half*>(in));
  if (run.type == q8_0) return static_cast<float>(static_cast<std::int8_t>(in[2 + i])) * scale;
  return static_cast<float>((in[2 + i % 16] >> (i / 16 * 4) & 15) - 8) * scale;
}

// One thread per value: neighbours read adjacent bytes and write adjacent values.
template <class T>
__global__ void __launch_bounds__(threads) decode_kernel(GgmlDecodeJob job) {
  const std::int64_t stride = std::int64_t(gridDim.x) * threads;
  for (std::int64_t n = std::int64_t(blockIdx.x) * threads + threadIdx.x; n < job.blocks * block_values; n += stride) {
    const GgmlRun run = job.runs[run_of(job, n / block_values)];
    const std::int64_t block = n / block_values - run.first;
    const int i = int(n % block_values);
    T* out = static_cast<T*>(job.out) + n;
    if (run.type < 0)
      *out = reinterpret_cast<const T*>(job.bytes + run.place)[block * block_values + i];
    else
      *out = store<T>(value_of(run, job.bytes + run.place, block, i));
  }
}

template <class T>
void launch_decode(const GgmlDecodeJob& job, cudaStream_t stream) {
  const std::int64_t blocks = (job.blocks * block_values + threads - 1) / threads;
  decode_kernel<T><<<unsigned(blocks < 65536 ? blocks : 65536), threads, 0, stream>>>(job);
}

}  // namespace

void ggml_decode(const GgmlDecodeJob& job, void* stream) {
  if (job.blocks == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  switch (job.type) {
    case Number::fp32:
      launch_decode<float>(job, on);
      break;
    case Number::bf16:
      launch_decode<__nv_bfloat16>(job, on);
      break;
    case Number::fp16:
      launch_decode<__half>(job, on);
      break;
    case Number::fp64:
      launch_decode<double>(job, on);
      break;
    default:
      throw std::runtime_error("types of ggml are decoded to floating types");
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string("ggml_decode: ") + cudaGetErrorString(error));
}

}  // namespace zero::cuda
