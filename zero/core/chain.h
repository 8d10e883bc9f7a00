#pragma once
// Chain: the units of a model in the order in which an engine runs through them.
#include <vector>

#include "models/model.h"
#include "zero/core/group_plan.h"

namespace zero {

using Chain = std::vector<Unit*>;

/// Returns embedding, blocks and head as a chain. The model must outlive the chain.
inline Chain chain_of(const Model& model) {
  Chain chain;
  for (const auto& unit : model.units) chain.push_back(unit.get());
  return chain;
}

inline Units units_of(const Chain& chain) { return {chain.begin(), chain.end()}; }

}  // namespace zero
