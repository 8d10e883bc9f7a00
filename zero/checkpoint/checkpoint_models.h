#pragma once
// CheckpointModels: whose states one checkpoint holds: those of one model, or of several by name, and what goes with them.
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "zero/core/model_states.h"

namespace zero {

/// One of the models. The states outlive it.
struct CheckpointModel {
  /// The only one: its tensors have their own names.
  CheckpointModel(ModelStates& states) : states(states) {}  // NOLINT(google-explicit-constructor)
  /// `name`: stands before the names of its tensors, "critic/weight"; it has no slash. `type`: of the module; states that
  /// another type wrote are refused; empty: unknown.
  CheckpointModel(ModelStates& states, std::string name, std::string type)
      : states(states), name(std::move(name)), type(std::move(type)) {}

  /// The checkpoint's name of one of the model's tensors.
  std::string full(const std::string& tensor) const { return name.empty() ? tensor : name + "/" + tensor; }

  ModelStates& states;
  std::string name, type;
};

/// Arrays of any shape by name, alike on all ranks. Types are those that checkpoints hold.
using CheckpointValues = std::map<std::string, at::Tensor>;

struct CheckpointModels {
  CheckpointModels(ModelStates& only) : models{only} {}  // NOLINT(google-explicit-constructor)
  explicit CheckpointModels(std::vector<CheckpointModel> models) : models(std::move(models)) {}

  /// Between all ranks, in host memory. There is at least one model.
  Communicator& host() const { return models.front().states.host(); }

  std::vector<CheckpointModel> models;  // over the same ranks
  std::vector<KeptArray> kept;          // of all models together
  CheckpointValues* values = nullptr;   // the owner's own: saved, or replaced by those that are read; null: none
  std::function<void()> take_values;    // called when values were replaced, before a model is; empty: nothing to do
};

}  // namespace zero
