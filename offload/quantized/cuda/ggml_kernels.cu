// Compiled without fused multiply-add, so the bits equal the CPU's.
#include "offload/quantized/cuda/ggml_kernels.h"

#include <stdexcept>
#include <string>

#include "base/numbers/device_numbers.cuh"
#include "base/numbers/ggml_codes.h"
#include "base/numbers/ggml_type.h"

namespace zero::cuda {
namespace {

constexpr int threads = 256;
constexpr int block_values = 32;

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

template <class Type>
__device__ float decoded(const std::uint8_t* start, std::int64_t element) {
  return ggml::value_of<Type>(start + element / Type::values * Type::bytes, int(element % Type::values));
}

/// An element of a run in a type of ggml.
__device__ float value_at(int type, const std::uint8_t* start, std::int64_t element) {
  switch (GgmlType(type)) {
    case GgmlType::f32:
      return reinterpret_cast<const float*>(start)[element];
    case GgmlType::f16:
      return __half2float(reinterpret_cast<const __half*>(start)[element]);
    case GgmlType::bf16:
      return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(start)[element]);
#define BLOCK_TYPE(type, Layout) \
  case GgmlType::type:           \
    return decoded<ggml::Layout>(start, element);
#include "base/numbers/ggml_block_types.inl"
  }
  return 0;
}

// One thread per value: neighbours read adjacent bytes and write adjacent values.
template <class T>
__global__ void __launch_bounds__(threads) decode_kernel(GgmlDecodeJob job) {
  const std::int64_t stride = std::int64_t(gridDim.x) * threads;
  for (std::int64_t n = std::int64_t(blockIdx.x) * threads + threadIdx.x; n < job.blocks * block_values; n += stride) {
    const GgmlRun run = job.runs[run_of(job, n / block_values)];
    const std::int64_t element = n - run.first * block_values;
    T* out = static_cast<T*>(job.out) + n;
    if (run.type < 0)
      *out = reinterpret_cast<const T*>(job.bytes + run.place)[element];
    else
      *out = store<T>(value_at(run.type, job.bytes + run.place, element));
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
