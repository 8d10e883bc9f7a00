#pragma once
// The optimizers that there are, their settings, and what a step makes of them.
#include <cstdint>
#include <string>
#include <vector>

#include "offload/kernels/optimizer_kernel.h"

namespace zero {

/// A rule that treats each element by itself, with at most two states (m and v) beside the master weight.
struct OptimizerRule {
  const char* name;        // of optimizer.name
  OptimizerKernel kernel;  // over states in host memory
  bool on_device;          // whether there is a kernel for states in a GPU's memory (offload/kernels/device_step.h)
};

/// Every rule; the first is the default.
const std::vector<OptimizerRule>& optimizer_rules();
std::vector<std::string> optimizer_names();
/// InternalError for a name that is not there.
const OptimizerRule& optimizer_rule(const std::string& name);

struct OptimizerOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  std::string name = "adamw";
};

/// What the kernel needs for a step: from 1, with that step's learning rate, and gradient_scale = clip factor / loss
/// scale.
StepFactors step_factors(const OptimizerOptions& options, std::int64_t step, double lr, double gradient_scale);

/// Parameters of two or more dimensions decay (of the tensor as the outside world knows it, not of the flat view).
inline bool decays(const std::vector<std::int64_t>& shape) { return shape.size() >= 2; }

}  // namespace zero
