#pragma once
// OptimizerOptions: what a user says of the optimizer.
#include <optional>
#include <string>
#include <vector>

#include "zero/optim/rule_settings.h"

namespace zero {

/// Tensors that are treated otherwise than the rest: those whose name one of the patterns matches.
struct OptimizerGroup {
  std::vector<std::string> match;        // of whole names, as fnmatch(3) has them: * ? [..]
  std::optional<std::string> optimizer;  // none: the run's. It gives the defaults of the settings below
  std::optional<double> lr;              // at the peak of the schedule, which all follow
  std::optional<double> weight_decay;    // of all tensors that match, vectors too
  std::optional<double> lr_adamw = {};   // Muon: of those that AdamW takes; `lr` is of its matrices then
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

/// A line for each setting, "lr 0.001", with all digits, and for those that groups have: what ranks must have alike.
std::string lines_of(const OptimizerOptions& options);

}  // namespace zero
