#pragma once
// The optimizers and their settings. Defaults are those of zero_train (docs/configuration.md, which cites each rule's
// source), except the learning rate. Weight decay applies to parameters of two or more dimensions, and to vectors in
// groups that set it.
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace zero {

/// Settings for parameters whose full name matches a pattern. With `lr` = 0 in the optimizer's settings, only groups
/// with their own rate are trained.
struct ParameterGroupOptions {
  std::vector<std::string> match;             // fnmatch(3) patterns: * ? [..]; the first group that matches counts
  std::optional<std::string> optimizer = {};  // "adamw", "sgd", ...; none: that of the rest
  std::optional<double> lr = {};              // none: the optimizer's, or for another optimizer its default
  std::optional<double> weight_decay = {};    // for all matches, vectors too
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
/// Muon for matrices of inner units; AdamW for the rest, with lr_adamw.
struct MuonOptions {
  double lr = 1e-3, momentum = 0.95, weight_decay = 0.1;
  bool nesterov = true;
  int ns_steps = 5;
  double lr_adamw = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  std::vector<ParameterGroupOptions> groups = {};
};

using OptimizerSettings = std::variant<AdamWOptions, AdamW8bitOptions, SgdOptions, LionOptions, AdafactorOptions,
                                       ProdigyOptions, MuonOptions>;

}  // namespace zero
