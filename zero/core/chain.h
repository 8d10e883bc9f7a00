#pragma once
// The units of a model as the engine runs through them.
#include "models/model.h"
#include "zero/core/group_plan.h"

namespace zero {

/// Embedding, blocks, head. The model outlives the chain.
inline Chain chain_of(const Model& model) {
  Chain chain;
  for (const auto& unit : model.units) chain.push_back(unit.get());
  return chain;
}

}  // namespace zero
