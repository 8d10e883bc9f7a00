// Compiled without fused multiply-add, so the bits equal the CPU's.
#include "offload/quantized/cuda/nf4_kernels.h"

#include <stdexcept>
#include <string>

#include "base/numbers/device_numbers.cuh"

namespace zero::cuda {
namespace {

constexpr int threads = 256;
constexpr int block_numbers = 64;
constexpr int scale_group = 256;
constexpr int lanes = 16;    // threads that encode a block, 4 numbers each
constexpr int numbers = 16;  // that a thread decodes

__device__ int code_of(float scaled, const float* middles) {
  int code = 0;
#pragma unroll
  for (int i = 0; i < 15; ++i) code += scaled > middles[i];
  return code;
}

// All threads of a block run the loop in step, since they exchange values.
__global__ void __launch_bounds__(threads) encode_kernel(Nf4EncodeJob job) {
  __shared__ float middles[16];
  if (threadIdx.x < 15) middles[threadIdx.x] = job.tables.middles[threadIdx.x];
  __syncthreads();
  const int lane = threadIdx.x % lanes;
  for (std::int64_t first = std::int64_t(blockIdx.x) * (threads / lanes); first < job.blocks;
       first += std::int64_t(gridDim.x) * (threads / lanes)) {
    const std::int64_t block = first + threadIdx.x / lanes;
    const bool valid = block < job.blocks;
    const float4 x = valid ? reinterpret_cast<const float4*>(job.values)[block * lanes + lane] : float4{0, 0, 0, 0};
    float largest = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
    for (int other = lanes / 2; other > 0; other /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, other));
    if (!valid) continue;
    const float inverse = largest > 0 ? 1 / largest : 0;
    std::uint8_t* codes = job.codes + (block * lanes + lane) * 2;
    codes[0] = std::uint8_t(code_of(x.x * inverse, middles) << 4 | code_of(x.y * inverse, middles));
    codes[1] = std::uint8_t(code_of(x.z * inverse, middles) << 4 | code_of(x.w * inverse, middles));
    if (lane == 0) job.largest[block] = largest;
  }
}

/// 16 bytes of elements.
template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

/// The last run that starts at or before the block.
__device__ int run_of(const Nf4DecodeJob& job, std::int64_t block) {
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

template <class T>
__global__ void __launch_bounds__(threads) decode_kernel(Nf4DecodeJob job) {
  __shared__ float book[16];
  __shared__ float map[256];
  if (threadIdx.x < 16) book[threadIdx.x] = job.tables.codes[threadIdx.x];
  map[threadIdx.x] = job.tables.map[threadIdx.x];
  __syncthreads();
  constexpr int parts = block_numbers / numbers;
  const std::int64_t stride = std::int64_t(gridDim.x) * threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < job.blocks * parts; i += stride) {
    const Nf4Run run = job.runs[run_of(job, i / parts)];
    const std::int64_t block = i / parts - run.first, part = i - run.first * parts;
    Pack<T>* out = reinterpret_cast<Pack<T>*>(static_cast<T*>(job.out) + i * numbers);
    if (run.scales < 0) {
      const Pack<T>* in =
          reinterpret_cast<const Pack<T>*>(reinterpret_cast<const T*>(job.bytes + run.values) + part * numbers);
#pragma unroll
      for (int p = 0; p < numbers / Pack<T>::size; ++p) out[p] = in[p];
      continue;
    }
    float largest;
    if (run.headers < 0) {
      largest = reinterpret_cast<const float*>(job.bytes + run.scales)[block];
    } else {
      const float* header =
          reinterpret_cast<const float*>(job.bytes + run.headers) + (block + run.skipped) / scale_group * 2;
      largest = map[job.bytes[run.scales + block]] * header[0] + header[1];
    }
    const unsigned long long packed = reinterpret_cast<const unsigned long long*>(job.bytes + run.values)[part];
#pragma unroll
    for (int p = 0; p < numbers / Pack<T>::size; ++p) {
      Pack<T> pack;
#pragma unroll
      for (int k = 0; k < Pack<T>::size; ++k) {
        const int n = p * Pack<T>::size + k;
        pack.at[k] = store<T>(book[packed >> (n / 2 * 8 + (n % 2 ? 0 : 4)) & 15] * largest);
      }
      out[p] = pack;
    }
  }
}

template <class T>
void launch_decode(const Nf4DecodeJob& job, cudaStream_t stream) {
  const std::int64_t blocks = (job.blocks * (block_numbers / numbers) + threads - 1) / threads;
  decode_kernel<T><<<unsigned(blocks < 65536 ? blocks : 65536), threads, 0, stream>>>(job);
}

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

}  // namespace

void nf4_encode(const Nf4EncodeJob& job, void* stream) {
  if (job.blocks == 0) return;
  const std::int64_t blocks = (job.blocks * lanes + threads - 1) / threads;
  encode_kernel<<<unsigned(blocks < 65536 ? blocks : 65536), threads, 0, static_cast<cudaStream_t>(stream)>>>(job);
  check_launch("nf4_encode");
}

void nf4_decode(const Nf4DecodeJob& job, void* stream) {
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
      throw std::runtime_error("NF4 is decoded to floating types");
  }
  check_launch("nf4_decode");
}

}  // namespace zero::cuda
