#pragma once
// DeviceNf4: NF4 blocks in a GPU's memory, to the bits of nf4.h and nf4_scales.h. Everything is issued to the current stream; the host waits
// for nothing. In a build without CUDA the constructor throws (cuda/absent.cpp).
#include <ATen/core/Tensor.h>

#include "offload/nf4.h"
#include "offload/nf4_scales.h"

namespace zero {

/// Blocks whose scales are quantised: consecutive ones of one tensor, in device memory.
struct Nf4DoubleBlocks {
  const std::uint8_t* codes = nullptr;        // [32 blocks]
  const std::uint8_t* scale_codes = nullptr;  // [blocks]
  const Nf4ScaleHeader* headers = nullptr;    // of their groups
  std::int64_t skipped = 0;                   // blocks of the first group that lie before the first of these
  std::int64_t blocks = 0;
};

class DeviceNf4 {
 public:
  explicit DeviceNf4(at::Device device);

  /// values: fp32 [64 blocks], on 16 bytes.
  void encode(const at::Tensor& values, const Nf4Blocks& out) const;

  /// Codes begin on 8 bytes. `out`: [64 blocks], fp32, bf16, fp16 or fp64, contiguous, on 16 bytes. Nothing that autograd sees.
  void decode(const Nf4Blocks& blocks, const at::Tensor& out) const;
  void decode(const Nf4DoubleBlocks& blocks, const at::Tensor& out) const;

  /// out.nbytes() of what is not quantised, past autograd too.
  void copy(const void* from, const at::Tensor& out) const;

 private:
  void* stream() const;

  at::Tensor tables_;
};

}  // namespace zero
