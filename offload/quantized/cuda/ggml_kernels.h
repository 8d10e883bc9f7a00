#pragma once
// Launcher of the kernel that decodes ggml types (base/numbers/ggml_blocks.h). Includes neither LibTorch nor CUDA's
// headers; a stream is a cudaStream_t.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

/// Consecutive blocks of 32 values in one type. Places count from the start of the bytes.
struct GgmlRun {
  std::int64_t first = 0;  // block of the output; runs follow each other without a gap
  std::int64_t place = 0;  // of its first byte, on 16 bytes
  int type = -1;           // enum ggml_type: F32, F16, Q4_0, Q8_0 or BF16; -1: elements of the output's type
};

struct GgmlDecodeJob {
  const GgmlRun* runs;  // in device memory
  int count;
  const std::uint8_t* bytes;
  std::int64_t blocks;  // of all runs
  void* out;            // [32 blocks]
  Number type;
};
/// One launch for any number of runs.
void ggml_decode(const GgmlDecodeJob& job, void* stream);

}  // namespace zero::cuda
