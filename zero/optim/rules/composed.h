#pragma once
// ComposedOptimizer: the base class of rules that are composed of LibTorch's operations. Some of them have loops for
// fp32 masters on the host.
#include "zero/optim/optimizer_table.h"

namespace zero {

class ComposedOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  /// A step allocates a few vectors of a span's length. On the host they fit into the caches; on a GPU they are long
  /// enough to keep it busy.
  std::int64_t longest_span(at::DeviceType device) const override {
    return std::int64_t{1} << (device == at::kCPU ? 18 : 24);
  }
  bool by_tensor() const override { return true; }
};

/// Returns the sum over a flat tensor in fp64, a scalar. The order of summation does not depend on threads.
at::Tensor ordered_sum(const at::Tensor& values);

/// Returns the same bits as ordered_sum() of the values' squares in fp64, but allocates no vector of that length.
at::Tensor ordered_sum_of_squares(const at::Tensor& values);

}  // namespace zero
