#pragma once
// LayoutChoices: the keys that a search for a layout may change, and their values.
#include <vector>

#include "models/model_config.h"
#include "zero/config/config_keys.h"
#include "zero/plan/plan_machine.h"

namespace zero {

/// A key and the values that the search tries.
struct LayoutChoice {
  const ConfigKey* key;
  std::vector<Value> values;
};

/// All keys that a search may change.
const std::vector<const ConfigKey*>& layout_keys();

/// The choices for a model on a machine, in an order in which is_sensible() can judge the first of them alone. Keys set
/// by an override have none. `config` has a global batch size. `any_batch`: the micro-batch is a choice, too.
std::vector<LayoutChoice> choices_of(const Config& config, const ModelConfig& model, const PlanMachine& machine,
                                     bool any_batch);

/// False for combinations that no run would want, or that differ from another one in nothing.
bool is_sensible(const Config& config);

}  // namespace zero
