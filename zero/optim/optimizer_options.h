#pragma once
// OptimizerOptions: the user's settings of the optimizer.
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/rule_settings.h"

namespace zero {

/// Tensors with settings of their own: those whose name matches one of the patterns. A field that is none takes the
/// default of the group's optimizer.
struct OptimizerGroup {
  std::vector<std::string> match;        // patterns for whole names, as in fnmatch(3): * ? [..]
  std::optional<std::string> optimizer;  // none: the run's
  std::optional<double> lr;              // at the peak of the schedule, which all tensors follow
  std::optional<double> weight_decay;    // of all tensors that match, vectors too
  std::optional<double> lr_adamw = {};   // Muon: rate of the tensors that AdamW takes; `lr` is that of its matrices
  std::string place = {};                // "config.toml:12", for messages

  bool operator==(const OptimizerGroup& o) const {
    return match == o.match && optimizer == o.optimizer && lr == o.lr && weight_decay == o.weight_decay &&
           lr_adamw == o.lr_adamw;
  }
};

struct OptimizerOptions : RuleSettings {
  std::string name = "adamw";
  std::vector<OptimizerGroup> groups = {};  // the first one that matches counts

  bool operator==(const OptimizerOptions&) const = default;
};

/// Lists every setting as a line, "lr 0.001", with all digits, and then those of the groups. Ranks must agree on the
/// result.
std::string lines_of(const OptimizerOptions& options);

}  // namespace zero
