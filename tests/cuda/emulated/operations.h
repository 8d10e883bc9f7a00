#pragma once
// Tensors of the emulated device as tasks see them: descriptions that own nothing. If a program frees memory too early,
// a task reads freed memory, as on a GPU.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "tests/cuda/emulated/device.h"

namespace zero::emulated {

class Described {
 public:
  /// Keeps a copy of a CPU tensor: operations take such numbers by value.
  explicit Described(const at::Tensor& tensor);
  /// Returns the memory as a CPU tensor; undefined for an undefined tensor.
  at::Tensor on_cpu() const;

 private:
  void* data_ = nullptr;
  std::vector<std::int64_t> sizes_, strides_;
  at::ScalarType type_ = at::kFloat;
  at::Tensor own_;
};

/// Queues `work` on the current stream of the tensor's device; it runs below autograd.
void defer(const at::Tensor& on, std::function<void()> work);

/// Makes the host wait for the current stream, which is an error if LibTorch's sync debug mode says so. Then runs
/// `work` on the device's memory.
void wait_and_run(const std::function<void()>& work);

/// The fused attention kernels (attention.cpp).
void register_attention(torch::Library& library);

}  // namespace zero::emulated
