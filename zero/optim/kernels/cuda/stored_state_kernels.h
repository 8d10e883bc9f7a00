#pragma once
// Launchers of the kernels that store states in fewer bytes. Includes neither LibTorch nor CUDA's headers; a stream is
// a cudaStream_t.
#include <cstdint>

namespace zero::cuda {

struct RoundingJob {
  const float* from;
  std::uint16_t* to;
  std::int64_t n, first;  // `first`: index of the first in its tensor
  std::uint64_t seed, stream;
  const double* steps;  // in device memory
};
void round_stochastically(const RoundingJob& job, void* stream);

struct SplitJob {
  float* master;
  std::uint16_t* weights;
  std::uint16_t* remainder;
  std::int64_t n;
};
void split_master(const SplitJob& job, void* stream);
void join_master(const SplitJob& job, void* stream);

}  // namespace zero::cuda
