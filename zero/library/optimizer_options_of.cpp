#include "zero/library/optimizer_options_of.h"

#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

/// What several optimizers have, each by the same name.
template <typename Settings>
OptimizerOptions common(const char* name, const Settings& settings) {
  OptimizerOptions options = optimizer_row(name).defaults;
  options.lr = settings.lr;
  options.weight_decay = settings.weight_decay;
  if constexpr (requires { settings.beta1; }) {
    options.beta1 = settings.beta1;
    options.beta2 = settings.beta2;
  }
  if constexpr (requires { settings.eps; }) options.eps = settings.eps;
  if constexpr (requires { settings.momentum; }) {
    options.momentum = settings.momentum;
    options.nesterov = settings.nesterov;
  }
  for (const ParameterGroupOptions& group : settings.groups)
    options.groups.push_back({group.match, group.optimizer, group.lr, group.weight_decay});
  return options;
}

OptimizerOptions convert(const AdamWOptions& settings) { return common("adamw", settings); }
OptimizerOptions convert(const AdamW8bitOptions& settings) { return common("adamw8bit", settings); }
OptimizerOptions convert(const SgdOptions& settings) { return common("sgd", settings); }
OptimizerOptions convert(const LionOptions& settings) { return common("lion", settings); }
OptimizerOptions convert(const AdafactorOptions& settings) { return common("adafactor", settings); }

OptimizerOptions convert(const ProdigyOptions& settings) {
  OptimizerOptions options = common("prodigy", settings);
  options.d0 = settings.d0;
  options.d_coef = settings.d_coef;
  options.use_bias_correction = settings.use_bias_correction;
  options.safeguard_warmup = settings.safeguard_warmup;
  return options;
}

OptimizerOptions convert(const MuonOptions& settings) {
  OptimizerOptions options = common("muon", settings);
  options.ns_steps = settings.ns_steps;
  options.lr_adamw = settings.lr_adamw;
  return options;
}

}  // namespace

OptimizerOptions optimizer_options_of(const OptimizerSettings& settings) {
  return std::visit([](const auto& one) { return convert(one); }, settings);
}

}  // namespace zero
