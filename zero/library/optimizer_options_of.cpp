#include "zero/library/optimizer_options_of.h"

#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

template <typename Settings>
OptimizerOptions start(const char* name, const Settings& settings) {
  OptimizerOptions options = optimizer_row(name).defaults;
  options.lr = settings.lr;
  options.weight_decay = settings.weight_decay;
  for (const ParameterGroupOptions& group : settings.groups)
    options.groups.push_back({group.match, group.optimizer, group.lr, group.weight_decay});
  return options;
}

template <typename Settings>
void set_moments(OptimizerOptions& options, const Settings& settings) {
  options.beta1 = settings.beta1;
  options.beta2 = settings.beta2;
  options.eps = settings.eps;
}

OptimizerOptions convert(const AdamWOptions& settings) {
  OptimizerOptions options = start("adamw", settings);
  set_moments(options, settings);
  return options;
}

OptimizerOptions convert(const AdamW8bitOptions& settings) {
  OptimizerOptions options = start("adamw8bit", settings);
  set_moments(options, settings);
  return options;
}

OptimizerOptions convert(const SgdOptions& settings) {
  OptimizerOptions options = start("sgd", settings);
  options.momentum = settings.momentum;
  options.nesterov = settings.nesterov;
  return options;
}

OptimizerOptions convert(const LionOptions& settings) {
  OptimizerOptions options = start("lion", settings);
  options.beta1 = settings.beta1;
  options.beta2 = settings.beta2;
  return options;
}

OptimizerOptions convert(const AdafactorOptions& settings) { return start("adafactor", settings); }

OptimizerOptions convert(const ProdigyOptions& settings) {
  OptimizerOptions options = start("prodigy", settings);
  set_moments(options, settings);
  options.d0 = settings.d0;
  options.d_coef = settings.d_coef;
  options.use_bias_correction = settings.use_bias_correction;
  options.safeguard_warmup = settings.safeguard_warmup;
  return options;
}

OptimizerOptions convert(const MuonOptions& settings) {
  OptimizerOptions options = start("muon", settings);
  set_moments(options, settings);
  options.momentum = settings.momentum;
  options.nesterov = settings.nesterov;
  options.ns_steps = settings.ns_steps;
  options.lr_adamw = settings.lr_adamw;
  return options;
}

}  // namespace

OptimizerOptions optimizer_options_of(const OptimizerSettings& settings) {
  return std::visit([](const auto& one) { return convert(one); }, settings);
}

}  // namespace zero
