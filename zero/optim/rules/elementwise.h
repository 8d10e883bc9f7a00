#pragma once
// ElementwiseOptimizer: the base class of rules that update each element, or each block of elements, independently and
// have a loop for the CPU (zero/optim/kernels/update_lanes.inl).
#include "zero/optim/optimizer_table.h"

namespace zero {

class ElementwiseOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  /// On a GPU a step may allocate vectors of a span's length.
  std::int64_t longest_span(at::DeviceType device) const override {
    return std::int64_t{1} << (device == at::kCPU || reads_device_numbers() ? 40 : 24);
  }
  /// All states have the master's type.
  std::vector<StateSpec> states(at::ScalarType master) const override;
  /// In host memory, runs the loop on all threads. The resulting bits do not depend on the kind of processor, the
  /// number of threads or the division into spans. Throws InternalError for types without a loop.
  void update(const UpdateSpan& span, const UpdateContext& context) const override;

 protected:
  virtual std::vector<std::string> state_names() const { return {}; }
  /// Returns this machine's fastest loop for the span's types; null if there is none.
  virtual UpdateLoop loop(const UpdateSpan& span) const = 0;
  /// Does the same on a GPU, and writes the weights.
  virtual void update_composed(const UpdateSpan& span, const UpdateContext& context) const = 0;
};

}  // namespace zero
