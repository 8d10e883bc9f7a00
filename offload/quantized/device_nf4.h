#pragma once
// DeviceNf4: NF4 blocks in a GPU's memory, to the bits of nf4.h and nf4_scales.h. It issues work to the current stream,
// and the host waits for nothing. In a build without CUDA the constructor throws (cuda/absent.cpp).
#include <ATen/core/Tensor.h>

#include <vector>

#include "offload/quantized/cuda/nf4_kernels.h"
#include "offload/quantized/nf4.h"
#include "offload/quantized/nf4_scales.h"

namespace zero {

class DeviceNf4 {
 public:
  explicit DeviceNf4(at::Device device);

  /// values: fp32 [64 blocks], 16-byte aligned.
  void encode(const at::Tensor& values, const Nf4Blocks& out) const;

  /// The table for decode(), in ascending order, copied to the device. The host waits.
  at::Tensor table_of(const std::vector<cuda::Nf4Run>& runs) const;
  /// Decodes all runs of a table to `out`, [64 blocks] in fp32, bf16, fp16 or fp64, contiguous, 16-byte aligned. It is
  /// one launch, and autograd does not see it. `bytes`: kByte, 16-byte aligned.
  void decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const;

 private:
  void* stream() const;

  at::Tensor tables_;
};

}  // namespace zero
