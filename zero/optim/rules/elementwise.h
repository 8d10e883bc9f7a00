#pragma once
// ElementwiseOptimizer: the base of rules that treat each element by itself and have a loop of vectors
// (zero/optim/kernels/update_lanes.inl) for the CPU.
#include "zero/optim/kernels/update_loop.h"
#include "zero/optim/optimizer_table.h"

namespace zero {

class ElementwiseOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  /// On a GPU a step may take vectors of a span's length.
  std::int64_t longest_span(at::DeviceType device) const override {
    return std::int64_t{1} << (device == at::kCPU || reads_device_numbers() ? 40 : 24);
  }
  /// All states are of the master's type.
  std::vector<StateSpec> states(at::ScalarType master) const override;
  void update(const UpdateSpan& span, const UpdateContext& context) const override;

 protected:
  virtual std::vector<std::string> state_names() const = 0;
  virtual ChooseLoops loops() const = 0;
  /// The same on a GPU, the weights included.
  virtual void update_composed(const UpdateSpan& span, const UpdateContext& context) const = 0;
};

/// A span's memory, for loops.
OptimizerSpan flat_span(const UpdateSpan& span);

}  // namespace zero
