#pragma once
// Sums several vectors in GPU memory along the balanced tree over ranks, (0+1)+(2+3), bit for bit as the CPU backends
// do. This header includes neither LibTorch nor CUDA's headers.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

struct TreeSum {
  const void* inputs = nullptr;  // `vectors` vectors of n elements, one after the other
  int vectors = 0;               // at most 127
  std::int64_t n = 0;
  Number in = Number::fp32;
  Number sum = Number::fp32;  // fp32 or fp64; for integers, the type of the inputs
  void* output = nullptr;     // n elements; may be one of the inputs
  Number out = Number::fp32;
  bool accumulate = false;  // output + sum is computed in `sum` and rounded once
};

/// Runs on the stream (a cudaStream_t). Throws std::runtime_error if the launch fails or the types do not match.
void tree_sum(const TreeSum& job, void* stream);

}  // namespace zero::cuda
