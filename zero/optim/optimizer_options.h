#pragma once
// OptimizerOptions: what a user says of the optimizer. Plain values; a rule reads those that it knows.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zero {

/// Tensors that are treated otherwise than the rest: those whose name one of the patterns matches.
struct OptimizerGroup {
  std::vector<std::string> match;        // of whole names, as fnmatch(3) has them: * ? [..]
  std::optional<std::string> optimizer;  // none: that of the run. What follows is by default as this optimizer has it
  std::optional<double> lr;              // at the peak of the schedule, which all follow
  std::optional<double> weight_decay;    // of all tensors that match, vectors too
  std::optional<double> lr_adamw = {};   // Muon: of those that AdamW takes; `lr` is of its matrices then
  std::string place = {};                // "config.toml:12", for messages

  bool operator==(const OptimizerGroup& o) const {
    return match == o.match && optimizer == o.optimizer && lr == o.lr && weight_decay == o.weight_decay &&
           lr_adamw == o.lr_adamw;
  }
};

struct OptimizerOptions {
  std::string name = "adamw";
  double lr = 1e-3;
  double weight_decay = 0.1;  // of tensors of two or more dimensions
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double momentum = 0.9;
  bool nesterov = true;
  double d0 = 1e-6;                         // Prodigy: the first estimate of the distance
  double d_coef = 1.0;                      // and what the later ones are multiplied by
  bool use_bias_correction = false;         // Prodigy: that of Adam's moments
  bool safeguard_warmup = false;            // Prodigy: a warm-up does not slow the estimate down
  std::int64_t ns_steps = 5;                // Muon: of the Newton-Schulz iteration
  double lr_adamw = 3e-4;                   // Muon: of the tensors that AdamW takes
  std::vector<OptimizerGroup> groups = {};  // the first one that matches counts
};

/// A line for each setting, "lr 0.001", with all digits, and for those that groups have: what ranks must have alike.
std::string lines_of(const OptimizerOptions& options);

}  // namespace zero
