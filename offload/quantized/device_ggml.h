#pragma once
// DeviceGgml: decodes ggml types in a GPU's memory, to the bits of base/numbers/ggml_blocks.h. It issues work to the
// current stream, and the host waits for nothing. In a build without CUDA its functions throw (cuda/absent.cpp).
#include <ATen/core/Tensor.h>

#include <vector>

#include "offload/quantized/cuda/ggml_kernels.h"

namespace zero {

class DeviceGgml {
 public:
  explicit DeviceGgml(at::Device device) : device_(device) {}

  /// The table for decode(), in ascending order, copied to the device. The host waits.
  at::Tensor table_of(const std::vector<cuda::GgmlRun>& runs) const;
  /// Decodes all runs of a table to `out`, [32 blocks] in fp32, bf16, fp16 or fp64, contiguous. It is one launch, and
  /// autograd does not see it. `bytes`: kByte, 16-byte aligned.
  void decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const;

 private:
  at::Device device_;
};

}  // namespace zero
