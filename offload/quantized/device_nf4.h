#pragma once
// DeviceNf4: encodes and decodes NF4 blocks in GPU memory, bit for bit as nf4.h and nf4_scales.h do. Work is queued on
// the current stream without waiting. In a build without CUDA the constructor throws (cuda/absent.cpp).
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

  /// Copies `runs`, in ascending order, to the device as a table for decode(). Waits for the copy.
  at::Tensor table_of(const std::vector<cuda::Nf4Run>& runs) const;
  /// Decodes all runs of a table to `out`, [64 blocks] in fp32, bf16, fp16 or fp64, contiguous and 16-byte aligned, in
  /// one launch. Autograd does not record it. `bytes` is kByte and 16-byte aligned.
  void decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const;

 private:
  void* stream() const;

  at::Tensor tables_;
};

}  // namespace zero
