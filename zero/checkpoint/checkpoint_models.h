#pragma once
// CheckpointModels: the models whose states share one checkpoint, and their extra values. There is one model, or
// several with names.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "zero/core/model_states.h"

namespace zero {

/// One of the models. The states must outlive it.
struct CheckpointModel {
  /// The only model of a checkpoint: tensors keep their own names.
  CheckpointModel(ModelStates& states) : states(states) {}  // NOLINT(google-explicit-constructor)
  /// `name` prefixes the names of its tensors ("critic/weight") and contains no slash. `type`: the module's type, empty
  /// if unknown. States of another type are rejected.
  CheckpointModel(ModelStates& states, std::string name, std::string type)
      : states(states), name(std::move(name)), type(std::move(type)) {}

  /// Returns the name that a tensor of the model has in the checkpoint.
  std::string full(const std::string& tensor) const { return name.empty() ? tensor : name + "/" + tensor; }

  ModelStates& states;
  std::string name, type;
};

/// Arrays of any shape by name, equal on all ranks. Their types must be ones that a checkpoint can hold.
using CheckpointValues = std::map<std::string, at::Tensor>;

struct CheckpointModels {
  CheckpointModels(ModelStates& only) : models{only} {}  // NOLINT(google-explicit-constructor)
  explicit CheckpointModels(std::vector<CheckpointModel> models) : models(std::move(models)) {}

  /// The communicator of all ranks for host memory. Requires at least one model.
  Communicator& host() const { return models.front().states.host(); }

  std::vector<CheckpointModel> models;  // over the same ranks
  std::vector<KeptArray> kept;          // of all models together
  CheckpointValues* values = nullptr;   // the caller's own values, saved, or overwritten on load; null: none
  std::function<void()> take_values;    // called after values are replaced, before any model changes; may be empty
};

}  // namespace zero
