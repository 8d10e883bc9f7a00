#pragma once
// DeviceGgml: decodes ggml types in GPU memory, bit for bit as base/numbers/ggml_blocks.h does. Work is queued on the
// current stream without waiting. In a build without CUDA the functions throw (cuda/absent.cpp).
#include <ATen/core/Tensor.h>

#include <vector>

#include "offload/quantized/cuda/ggml_kernels.h"

namespace zero {

class DeviceGgml {
 public:
  explicit DeviceGgml(at::Device device) : device_(device) {}

  /// Copies `runs`, in ascending order, to the device as a table for decode(). Waits for the copy.
  at::Tensor table_of(const std::vector<cuda::GgmlRun>& runs) const;
  /// Decodes all runs of a table to `out`, contiguous [32 * blocks] in fp32, bf16, fp16 or fp64, in one launch.
  /// Autograd does not record it. `bytes` is kByte and 16-byte aligned.
  void decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const;

 private:
  at::Device device_;
};

}  // namespace zero
