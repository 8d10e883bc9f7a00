#pragma once
// The states of a program's models as a folder, for ShardedModel and Checkpoint.
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "zero/checkpoint/checkpoint_models.h"
#include "zero/library/sharded_impl.h"

namespace zero {

/// Models by the names of their states; the one of a model that is alone is empty. All are of the world.
using StateModels = std::map<std::string, std::shared_ptr<ShardedModel::Impl>>;

/// Saves the models' states, with the values, as the newest state of the folder. `call`: for messages. Collective.
void save_state_of(const StateModels& models, CheckpointValues& values, const World& world, const std::string& folder,
                   const std::string& call);

/// Loads the newest state, and replaces the values by those that it holds. `take_values`: called then, before a model
/// changes; what it throws on one process all throw. Returns the steps done, of the model that did the most. Collective.
std::int64_t load_state_of(const StateModels& models, CheckpointValues& values, const World& world,
                           const std::string& folder, const std::string& call,
                           const std::function<void()>& take_values = {});

/// Whether there is a state to load. Collective.
bool has_state_in(const std::string& folder, const World& world);

}  // namespace zero
