#pragma once
// The optimizers that there are.
#include <memory>
#include <string>
#include <vector>

#include "zero/optim/optimizer.h"

namespace zero {

struct OptimizerRow {
  std::string name;                   // of optimizer.name
  std::string doc;                    // what the rule is, and whose
  std::vector<std::string> settings;  // keys of rule_settings.inl that it takes beside those of every rule
  OptimizerOptions defaults;          // of these
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
};

/// True if the rule takes the setting.
bool takes(const OptimizerRow& row, const RuleSetting& setting);

/// Every optimizer; the first is the default.
const std::vector<OptimizerRow>& optimizer_table();
std::vector<std::string> optimizer_names();
/// InternalError for a name that is not there.
const OptimizerRow& optimizer_row(const std::string& name);

}  // namespace zero
