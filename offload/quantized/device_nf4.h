#pragma once
// DeviceNf4: NF4 blocks in a GPU's memory, to the bits of nf4.h and nf4_scales.h. Everything is issued to the current
// stream; the host waits for nothing. In a build without CUDA the constructor throws (cuda/absent.cpp).
#include <ATen/core/Tensor.h>

#include <vector>

#include "offload/quantized/cuda/nf4_kernels.h"
#include "offload/quantized/nf4.h"
#include "offload/quantized/nf4_scales.h"

namespace zero {

class DeviceNf4 {
 public:
  explicit DeviceNf4(at::Device device);

  /// values: fp32 [64 blocks], on 16 bytes.
  void encode(const at::Tensor& values, const Nf4Blocks& out) const;

  /// What decode() goes by, in ascending order, brought to the device. The host waits.
  at::Tensor table_of(const std::vector<cuda::Nf4Run>& runs) const;
  /// All runs of a table to `out`, [64 blocks] in fp32, bf16, fp16 or fp64, contiguous, on 16 bytes: one launch, and
  /// nothing that autograd sees. `bytes`: kByte, on 16 bytes.
  void decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const;

 private:
  void* stream() const;

  at::Tensor tables_;
};

}  // namespace zero
