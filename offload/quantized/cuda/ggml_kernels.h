#pragma once
// Launches the kernel that decodes ggml types (base/numbers/ggml_blocks.h). This header includes neither LibTorch nor
// CUDA's headers. A stream is a cudaStream_t.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

/// Consecutive values of one type, in units of 32.
struct GgmlRun {
  std::int64_t first = 0;  // first unit of the output; runs follow each other without gaps
  std::int64_t place = 0;  // offset of the first byte in `bytes`, a multiple of 16
  int type = -1;           // any GgmlType; -1: elements of the output's type
};

struct GgmlDecodeJob {
  const GgmlRun* runs;  // in device memory
  int count;
  const std::uint8_t* bytes;
  std::int64_t blocks;  // units of 32 values, of all runs
  void* out;            // [32 blocks]
  Number type;
};
/// Decodes any number of runs in one launch.
void ggml_decode(const GgmlDecodeJob& job, void* stream);

}  // namespace zero::cuda
