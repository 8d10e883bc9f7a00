#pragma once
// Launchers of NF4's kernels (offload/nf4.h, offload/nf4_scales.h). Sees neither LibTorch nor CUDA's headers; a stream is a cudaStream_t.
#include <cstdint>

namespace zero::cuda {

enum class Nf4Type : int { fp32, bf16, fp16, fp64 };

/// In device memory.
struct Nf4Tables {
  const float* codes;    // [16], the code book
  const float* middles;  // [15], between neighbours
  const float* map;      // [256], of quantised scales
};

struct Nf4EncodeJob {
  const float* values;        // [64 blocks], on 16 bytes
  std::uint8_t* codes;        // [32 blocks]
  float* largest;             // [blocks]
  std::int64_t blocks;
  Nf4Tables tables;
};
void nf4_encode(const Nf4EncodeJob& job, void* stream);

struct Nf4DecodeJob {
  const std::uint8_t* codes;        // [32 blocks], on 8 bytes
  const float* largest;             // [blocks]; null: they are quantised
  const std::uint8_t* scale_codes;  // [blocks]
  const float* headers;             // largest and mean of each group of 256 blocks
  std::int64_t skipped;             // blocks of the first group that lie before the first block
  std::int64_t blocks;
  Nf4Tables tables;
  void* out;                        // [64 blocks], on 16 bytes
  Nf4Type type;
};
void nf4_decode(const Nf4DecodeJob& job, void* stream);

}  // namespace zero::cuda
