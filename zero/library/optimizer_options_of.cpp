#include "zero/library/optimizer_options_of.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

/// Settings that several optimizers share, by the same names.
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

void check(bool holds, const char* name, double value, const char* rule) {
  if (!holds || !std::isfinite(value)) throw InputError(text("optimizer settings: ", name, " = ", value, ": ", rule));
}
void check_not_negative(const char* name, double value) { check(value >= 0, name, value, "at least 0"); }
void check_positive(const char* name, double value) { check(value > 0, name, value, "above 0"); }
void check_decay(const char* name, double value) { check(value >= 0 && value < 1, name, value, "at least 0, below 1"); }

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// Checks the bounds that the configuration's keys have (docs/configuration.md).
void check(const OptimizerOptions& options) {
  check_not_negative("lr", options.lr);
  check_not_negative("lr_adamw", options.lr_adamw);
  check_not_negative("weight_decay", options.weight_decay);
  check_decay("beta1", options.beta1);
  check_decay("beta2", options.beta2);
  check_decay("momentum", options.momentum);
  check_positive("eps", options.eps);
  check_positive("d0", options.d0);
  check_positive("d_coef", options.d_coef);
  check(options.ns_steps >= 1 && options.ns_steps <= 100, "ns_steps", double(options.ns_steps), "1 to 100");
  for (const OptimizerGroup& group : options.groups) {
    if (group.match.empty())
      throw InputError("optimizer settings: a group without match: name the parameters that it is of");
    if (const auto known = optimizer_names();
        group.optimizer && std::ranges::find(known, *group.optimizer) == known.end())
      throw InputError("optimizer settings: a group's optimizer = \"" + *group.optimizer + "\": one of " +
                       joined(known));
    check_not_negative("lr of a group", group.lr.value_or(0));
    check_not_negative("weight_decay of a group", group.weight_decay.value_or(0));
  }
}

}  // namespace

OptimizerOptions optimizer_options_of(const OptimizerSettings& settings) {
  OptimizerOptions options = std::visit([](const auto& one) { return convert(one); }, settings);
  check(options);
  return options;
}

}  // namespace zero
