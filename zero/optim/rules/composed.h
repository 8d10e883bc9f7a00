#pragma once
// ComposedOptimizer: the base of rules made of LibTorch's operations, the same on every device.
#include "zero/optim/optimizer_table.h"

namespace zero {

class ComposedOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  /// A step takes a few vectors of a span's length. On the host they stay in the caches; a GPU is kept busy by them.
  std::int64_t longest_span(at::DeviceType device) const override {
    return std::int64_t{1} << (device == at::kCPU ? 18 : 24);
  }
  bool by_tensor() const override { return true; }
};

/// The sum over a flat tensor in fp64, in an order that threads do not change: a scalar.
at::Tensor ordered_sum(const at::Tensor& values);

/// ordered_sum() of their squares, each taken in fp64: the same bits without vectors of that length.
at::Tensor ordered_sum_of_squares(const at::Tensor& values);

}  // namespace zero
