#pragma once
// OptimizerOptions: the user's settings of the optimizer.
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/rule_settings.h"

namespace zero {

/// Settings for tensors whose name matches one of the patterns. An empty field takes the default of the group's
/// optimizer.
struct OptimizerGroup {
  std::vector<std::string> match;        // patterns for whole names, as in fnmatch(3): * ? [..]
  std::optional<std::string> optimizer;  // none: the run's optimizer
  std::optional<double> lr;              // rate at the peak of the schedule, which all tensors follow
  std::optional<double> weight_decay;    // for all tensors that match, vectors too
  std::optional<double> lr_adamw = {};   // Muon: rate for tensors that AdamW updates; `lr` is for Muon's matrices
  std::string place = {};                // "config.toml:12", for messages

  bool operator==(const OptimizerGroup& o) const {
    return match == o.match && optimizer == o.optimizer && lr == o.lr && weight_decay == o.weight_decay &&
           lr_adamw == o.lr_adamw;
  }
};

struct OptimizerOptions : RuleSettings {
  std::string name = "adamw";
  std::vector<OptimizerGroup> groups = {};  // the first group that matches applies

  bool operator==(const OptimizerOptions&) const = default;
};

/// Lists every setting on a line, "lr 0.001", with all digits, then the groups' settings. Used to check that ranks
/// agree.
std::string lines_of(const OptimizerOptions& options);

}  // namespace zero
