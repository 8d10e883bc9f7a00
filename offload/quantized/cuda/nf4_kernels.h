#pragma once
// Launches NF4's kernels (offload/quantized/nf4.h, offload/quantized/nf4_scales.h). This header includes neither
// LibTorch nor CUDA's headers. A stream is a cudaStream_t.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

/// Tables in device memory.
struct Nf4Tables {
  const float* codes;    // [16], the code book
  const float* middles;  // [15], midpoints between adjacent codes
  const float* map;      // [256], the values of quantized scales
};

struct Nf4EncodeJob {
  const float* values;  // [64 blocks], 16-byte aligned
  std::uint8_t* codes;  // [32 blocks]
  float* largest;       // [blocks]
  std::int64_t blocks;
  Nf4Tables tables;
};
void nf4_encode(const Nf4EncodeJob& job, void* stream);

/// Consecutive blocks of one kind, decoded together. Offsets count from the start of `bytes`.
struct Nf4Run {
  std::int64_t first = 0;  // first block of the output; runs follow each other without gaps
  // offset of the codes, [32 blocks], a multiple of 8; or of elements of the output's type, a multiple of 16
  std::int64_t values = 0;
  std::int64_t scales = -1;  // offset of the blocks' largest values: [blocks] floats, or with headers their codes,
                             // [blocks] bytes; -1: elements, not codes
  // offset of each group's largest value and mean (256 blocks); -1: scales are not quantized
  std::int64_t headers = -1;
  std::int64_t skipped = 0;  // blocks of the first group that lie before the first block
};

struct Nf4DecodeJob {
  const Nf4Run* runs;  // in device memory
  int count;
  const std::uint8_t* bytes;
  std::int64_t blocks;  // of all runs
  Nf4Tables tables;
  void* out;  // [64 blocks], 16-byte aligned
  Number type;
};
/// Decodes any number of runs in one launch.
void nf4_decode(const Nf4DecodeJob& job, void* stream);

}  // namespace zero::cuda
