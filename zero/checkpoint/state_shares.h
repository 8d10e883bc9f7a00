#pragma once
// StateShares: which rank writes which states. Where several ranks hold the same states (stage 0, replicas of hybrid
// sharding) each writes an equal part, so that a save takes 1/N of the time at every stage.
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// Numbers of a tensor or of the run that an optimizer keeps, or that the model's owner does, alike on all ranks.
struct SavedStatistic {
  std::string name;   // "row_var:model.layers.0.mlp.up_proj.weight", of the run "d:"
  at::Tensor values;  // flat, on any device
  bool required = true;

  StateSpec state() const { return {name.substr(0, name.find(':')), values.scalar_type()}; }
};
std::vector<SavedStatistic> saved_statistics(ModelStates& model);

/// Frozen groups that checkpoints hold, and the one array that they hold of each.
std::vector<ParameterGroup*> saved_frozen(ModelStates& model);
StateSpec frozen_state(const ParameterGroup& group);

/// Arrays that belong to no model: what is kept of all together, and the owner's values.
std::vector<SavedStatistic> shared_arrays(const CheckpointModels& of);
/// The manifest's name of an owner's value, and the name of its one array.
inline constexpr const char *value_prefix = "value:", *value_state = "value";

/// The groups of a manifest. For each model: one for each optimizer of each trained group, in order, one for each frozen
/// group that is saved, and one for each statistic; then one for each shared array and each value.
std::vector<SavedGroup> saved_groups(const CheckpointModels& of);

/// What each rank writes, by rank: a section per saved group. The first rank writes statistics, shared arrays and values.
std::vector<std::vector<ShardSection>> sections_of_ranks(const CheckpointModels& of);

/// Bytes of each rank's shard file, by rank.
std::vector<std::int64_t> shard_bytes(const CheckpointModels& of);
/// Of all of them.
std::int64_t checkpoint_bytes(const CheckpointModels& of);

}  // namespace zero
