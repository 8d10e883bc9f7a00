#include "zero/optim/kernels/cuda/stored_state_kernels.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "base/numbers/stored_fp32.h"
#include "base/philox_block.h"

namespace zero::cuda {
namespace {

constexpr int threads = 256, lanes = 8;

__device__ std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

__device__ float float_of(std::uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// A thread draws one block, for eight elements that lie eight apart: eight threads in a row write 64.
__global__ void __launch_bounds__(threads) round_kernel(RoundingJob job) {
  const std::uint64_t key = rounding_key(job.seed, std::uint64_t(*job.steps));
  const std::int64_t first_group = job.first / drawn_elements, end = job.first + job.n,
                     all = ((end + drawn_elements - 1) / drawn_elements - first_group) * lanes;
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < all;
       i += std::int64_t(gridDim.x) * threads) {
    const std::int64_t group = first_group + i / lanes, lane = i % lanes;
    const PhiloxBlock block = philox_block(key, job.stream, std::uint64_t(group * lanes + lane));
#pragma unroll
    for (int half = 0; half < 8; ++half) {
      const std::int64_t element = group * drawn_elements + half * lanes + lane;
      if (element < job.first || element >= end) continue;
      const std::uint32_t drawn = half % 2 ? block.word[half / 2] >> 16 : block.word[half / 2] & 0xFFFFu;
      job.to[element - job.first] = std::uint16_t(stochastic_bf16(bits_of(job.from[element - job.first]), drawn));
    }
  }
}

__global__ void __launch_bounds__(threads) split_kernel(SplitJob job) {
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < job.n;
       i += std::int64_t(gridDim.x) * threads) {
    const std::uint32_t bits = bits_of(job.master[i]);
    job.weights[i] = std::uint16_t(split_bf16(bits));
    job.remainder[i] = std::uint16_t(split_remainder(bits));
  }
}

__global__ void __launch_bounds__(threads) join_kernel(SplitJob job) {
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < job.n;
       i += std::int64_t(gridDim.x) * threads)
    job.master[i] = float_of(joined_fp32(std::uint32_t(job.weights[i]), std::uint32_t(job.remainder[i])));
}

unsigned blocks_for(std::int64_t work) {
  const std::int64_t blocks = (work + threads - 1) / threads;
  return unsigned(blocks < 65536 ? blocks : 65536);
}

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

}  // namespace

void round_stochastically(const RoundingJob& job, void* stream) {
  if (job.n == 0) return;
  const unsigned blocks = blocks_for((job.n / drawn_elements + 2) * lanes);
  round_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(job);
  check_launch("round_stochastically");
}

void split_master(const SplitJob& job, void* stream) {
  if (job.n == 0) return;
  split_kernel<<<blocks_for(job.n), threads, 0, static_cast<cudaStream_t>(stream)>>>(job);
  check_launch("split_master");
}

void join_master(const SplitJob& job, void* stream) {
  if (job.n == 0) return;
  join_kernel<<<blocks_for(job.n), threads, 0, static_cast<cudaStream_t>(stream)>>>(job);
  check_launch("join_master");
}

}  // namespace zero::cuda
