#pragma once
// AdamW's settings, and what a step makes of them.
#include <cstdint>
#include <vector>

#include "offload/kernels/adamw_kernel.h"

namespace zero {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

/// The rule and its settings; the states live in an OptimizerStore.
class AdamW {
 public:
  explicit AdamW(const AdamWOptions& options) : options_(options) {}

  const AdamWOptions& options() const { return options_; }

  /// What the kernel needs for a step: from 1, with that step's learning rate, and gradient_scale = clip factor / loss
  /// scale.
  AdamWFactors factors(std::int64_t step, double lr, double gradient_scale) const;

  /// Parameters of two or more dimensions decay (of the tensor as the outside world knows it, not of the flat view).
  static bool decays(const std::vector<std::int64_t>& shape) { return shape.size() >= 2; }

 private:
  AdamWOptions options_;
};

}  // namespace zero
