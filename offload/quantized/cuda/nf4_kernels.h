#pragma once
// Launchers of NF4's kernels (offload/quantized/nf4.h, offload/quantized/nf4_scales.h). Includes neither LibTorch nor
// CUDA's headers; a stream is a cudaStream_t.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

/// Tables in device memory.
struct Nf4Tables {
  const float* codes;    // [16], the code book
  const float* middles;  // [15], between neighbours
  const float* map;      // [256], of quantised scales
};

struct Nf4EncodeJob {
  const float* values;  // [64 blocks], on 16 bytes
  std::uint8_t* codes;  // [32 blocks]
  float* largest;       // [blocks]
  std::int64_t blocks;
  Nf4Tables tables;
};
void nf4_encode(const Nf4EncodeJob& job, void* stream);

/// Consecutive blocks of one kind, decoded together. Places count from the start of the bytes.
struct Nf4Run {
  std::int64_t first = 0;  // block of the output; runs follow each other without a gap
  // place of the codes, [32 blocks] on 8 bytes; or of elements of the output's type, on 16 bytes
  std::int64_t values = 0;
  std::int64_t scales = -1;  // place of the blocks' largest values, [blocks] floats, or, with headers, of their codes,
                             // [blocks]; -1: elements
  // place of the largest and the mean of each group of 256 blocks; -1: scales are not quantised
  std::int64_t headers = -1;
  std::int64_t skipped = 0;  // blocks of the first group that lie before the first block
};

struct Nf4DecodeJob {
  const Nf4Run* runs;  // in device memory
  int count;
  const std::uint8_t* bytes;
  std::int64_t blocks;  // of all runs
  Nf4Tables tables;
  void* out;  // [64 blocks], on 16 bytes
  Number type;
};
/// One launch for any number of runs.
void nf4_decode(const Nf4DecodeJob& job, void* stream);

}  // namespace zero::cuda
