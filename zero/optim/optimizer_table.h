#pragma once
// The table of optimizers.
#include <memory>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

struct OptimizerRow {
  std::string name;                   // value of optimizer.name
  std::string doc;                    // describes the rule and names its authors
  std::vector<std::string> settings;  // keys of rule_settings.inl that this rule accepts and not every rule has
  OptimizerOptions defaults;          // the rule's own defaults
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
};

/// Returns true if the rule accepts the setting.
bool takes(const OptimizerRow& row, const RuleSetting& setting);

/// Every optimizer; the first is the default.
const std::vector<OptimizerRow>& optimizer_table();
std::vector<std::string> optimizer_names();
/// Throws InternalError for an unknown name.
const OptimizerRow& optimizer_row(const std::string& name);

}  // namespace zero
