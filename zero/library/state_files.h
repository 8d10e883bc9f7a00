#pragma once
// Saves and loads a program's model states in a folder, for ShardedModel and Checkpoint.
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "zero/checkpoint/checkpoint_models.h"
#include "zero/library/sharded_impl.h"

namespace zero {

/// Models by the names of their states; a single model has an empty name. All models belong to the same world.
using StateModels = std::map<std::string, std::shared_ptr<ShardedModel::Impl>>;

/// Saves the models' states and the values as the folder's newest state. `call`: the caller's name, for messages.
/// Collective.
void save_state_of(const StateModels& models, CheckpointValues& values, const World& world, const std::string& folder,
                   const std::string& call);

/// Loads the newest state and replaces the values. Then calls `take_values`, before any model changes. If it throws on
/// one process, all processes throw. Returns the largest step count of the models. Collective.
std::int64_t load_state_of(const StateModels& models, CheckpointValues& values, const World& world,
                           const std::string& folder, const std::string& call,
                           const std::function<void()>& take_values = {});

/// Returns true if there is a state to load. Collective.
bool has_state_in(const std::string& folder, const World& world);

}  // namespace zero
