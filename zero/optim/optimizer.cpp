#include "zero/optim/optimizer.h"

#include "base/error.h"
#include "offload/kernels/adamw_kernel.h"

namespace zero {

const std::vector<OptimizerRule>& optimizer_rules() {
  static const std::vector<OptimizerRule> rules{
      {"adamw", adamw_update, true},
  };
  return rules;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerRule& rule : optimizer_rules()) names.emplace_back(rule.name);
  return names;
}

const OptimizerRule& optimizer_rule(const std::string& name) {
  for (const OptimizerRule& rule : optimizer_rules())
    if (name == rule.name) return rule;
  throw InternalError("no optimizer \"" + name + "\"");
}

StepFactors step_factors(const OptimizerOptions& options, std::int64_t step, double lr, double gradient_scale) {
  return {.lr = lr,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .gradient_scale = gradient_scale,
          .step = step,
          .kernel = optimizer_rule(options.name).kernel};
}

}  // namespace zero
