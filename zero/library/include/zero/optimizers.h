#pragma once
// The optimizers by their settings. Defaults are those of zero_train (docs/configuration.md), where each rule's source is
// named, but for the learning rate, which a program should choose; the weight decay is of parameters of two or more
// dimensions, and of vectors in groups that say so.
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace zero {

/// Parameters that are treated otherwise than the rest: those whose full name one of the patterns matches. With `lr` = 0
/// in the optimizer's settings only groups with a rate of their own are trained.
struct ParameterGroupOptions {
  std::vector<std::string> match;             // as fnmatch(3) has them: * ? [..]; the first group that matches counts
  std::optional<std::string> optimizer = {};  // "adamw", "sgd", ...; none: that of the rest
  std::optional<double> lr = {};              // none: that of the rest, or of another optimizer its default
  std::optional<double> weight_decay = {};    // of all that match, vectors too
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  std::vector<ParameterGroupOptions> groups = {};
};
/// Moments in 8 bits, block-wise (bitsandbytes' codes).
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
/// Matrices of inner units; AdamW takes the rest, with lr_adamw.
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
