#pragma once
// The optimizers and their settings. Defaults are those of zero_train, except the learning rate. docs/configuration.md
// lists them and cites each optimizer's source. Weight decay applies to parameters with two or more dimensions, and to
// vectors in groups that set it.
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace zero {

/// Settings for parameters whose full name matches a pattern. With `lr` = 0 in the optimizer's settings, only groups
/// with their own rate are trained.
struct ParameterGroupOptions {
  std::vector<std::string> match;             // fnmatch(3) patterns: * ? [..]; the first group that matches counts
  std::optional<std::string> optimizer = {};  // "adamw", "sgd", ...; none: the other parameters' optimizer
  std::optional<double> lr = {};              // none: the main rate, or another optimizer's default
  std::optional<double> weight_decay = {};    // applies to all matches, vectors too
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  std::vector<ParameterGroupOptions> groups = {};
};
/// AdamW with block-wise 8-bit moments (bitsandbytes' codes).
struct AdamW8bitOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  std::vector<ParameterGroupOptions> groups = {};
};
struct SgdOptions {
  double lr = 1e-3, momentum = 0.9;
  bool nesterov = true;
  double weight_decay = 0;
  std::vector<ParameterGroupOptions> groups = {};
};
struct LionOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1;
  std::vector<ParameterGroupOptions> groups = {};
};
struct AdafactorOptions {
  double lr = 1e-3, weight_decay = 0.1;
  std::vector<ParameterGroupOptions> groups = {};
};
struct ProdigyOptions {
  double lr = 1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, d0 = 1e-6, d_coef = 1, weight_decay = 0.1;
  bool use_bias_correction = false, safeguard_warmup = false;
  std::vector<ParameterGroupOptions> groups = {};
};
/// Muon for matrices of inner units; AdamW with lr_adamw for all other parameters.
struct MuonOptions {
  double lr = 1e-3, momentum = 0.95, weight_decay = 0.1;
  bool nesterov = true;
  int ns_steps = 5;
  bool ns_bf16 = false;
  double lr_adamw = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  std::vector<ParameterGroupOptions> groups = {};
};

using OptimizerSettings = std::variant<AdamWOptions, AdamW8bitOptions, SgdOptions, LionOptions, AdafactorOptions,
                                       ProdigyOptions, MuonOptions>;

}  // namespace zero
