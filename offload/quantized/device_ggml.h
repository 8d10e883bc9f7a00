#pragma once
// DeviceGgml: values in types of ggml, in a GPU's memory, to the bits of base/numbers/ggml_blocks.h. Issued to the
// current stream; the host waits for nothing. In a build without CUDA its functions throw (cuda/absent.cpp).
#include <ATen/core/Tensor.h>

#include <vector>

#include "offload/quantized/cuda/ggml_kernels.h"

namespace zero {

class DeviceGgml {
 public:
  explicit DeviceGgml(at::Device device) : device_(device) {}

  /// What decode() goes by, in ascending order, brought to the device. The host waits.
  at::Tensor table_of(const std::vector<cuda::GgmlRun>& runs) const;
  /// All runs of a table to `out`, [32 blocks] in fp32, bf16, fp16 or fp64, contiguous: one launch, and nothing that
  /// autograd sees. `bytes`: kByte, on 16 bytes.
  void decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const;

 private:
  at::Device device_;
};

}  // namespace zero
