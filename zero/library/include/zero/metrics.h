#pragma once
// MeanMetric: the mean of a number over the rows of all batches and processes (torchmetrics.MeanMetric).
//
//   zero::MeanMetric mean_loss(world);
//   for (auto& batch : loader) {
//     ...
//     mean_loss.update(loss, batch.data.size(0));
//   }
//   double loss = mean_loss.compute();
#include <torch/types.h>

#include <zero/world.h>

namespace zero {

class MeanMetric {
 public:
  explicit MeanMetric(const World& world);

  /// Adds a scalar value with this weight, normally its number of rows. With weight 0 the value is ignored, since the
  /// mean over no rows is NaN. Does not wait for other processes or for the device.
  void update(const torch::Tensor& value, double weight = 1);
  /// Returns the mean over all values of all processes since the last reset(). Throws InputError if all weights are 0.
  /// Collective.
  double compute() const;
  void reset();

 private:
  World world_;
  torch::Tensor sums_;  // fp64 [2]: weight * value, weight
};

}  // namespace zero
