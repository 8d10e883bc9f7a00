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
  std::vector<std::string> settings;  // keys of [optimizer] that it knows beside name, lr and weight_decay
  OptimizerOptions defaults;          // of these
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
};

/// Every optimizer; the first is the default.
const std::vector<OptimizerRow>& optimizer_table();
std::vector<std::string> optimizer_names();
/// InternalError for a name that is not there.
const OptimizerRow& optimizer_row(const std::string& name);

}  // namespace zero
