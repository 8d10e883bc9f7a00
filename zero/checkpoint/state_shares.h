#pragma once
// StateShares: decides which rank writes which states. Ranks with the same states (stage 0, replicas of hybrid
// sharding) each write an equal part. A save therefore takes 1/N of the time at every stage.
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// Numbers per tensor or per run, equal on all ranks, kept by an optimizer or by the model's owner.
struct SavedStatistic {
  std::string name;   // "row_var:model.layers.0.mlp.up_proj.weight"; for the whole run "d:"
  at::Tensor values;  // flat, on any device
  bool required = true;

  StateSpec state() const { return {name.substr(0, name.find(':')), values.scalar_type()}; }
};
std::vector<SavedStatistic> saved_statistics(ModelStates& model);

/// The frozen groups that checkpoints hold, and the name of the single array saved for each.
std::vector<ParameterGroup*> saved_frozen(ModelStates& model);
StateSpec frozen_state(const ParameterGroup& group);

/// Arrays that belong to no single model: shared ones and the owner's values.
std::vector<SavedStatistic> shared_arrays(const CheckpointModels& of);
/// Prefix of an owner's value in the manifest, and the name of its single array.
inline constexpr const char *value_prefix = "value:", *value_state = "value";

/// Arrays of a checkpoint: the states of one optimizer's tensors in a group, or the weights of a frozen group. A group
/// of slices has a part for each rank of the tensor axis.
struct SavedPart {
  ParameterGroup* group = nullptr;
  StateShard* shard = nullptr;  // null: the group is frozen
  int slice = 0;                // rank of the tensor axis that holds these slices; 0 for whole parameters
  FlatLayout flat;              // the layout on that rank
  std::optional<StateLayout> layout = {};

  /// Returns true if this rank of the mesh holds a share of the part.
  bool is_held_by(int rank, const MeshShape& mesh) const {
    return mesh.index(rank, MeshAxis::pipeline) == group->spec().stage &&
           (!group->spec().cut || mesh.index(rank, MeshAxis::tensor) == slice);
  }
};
/// Returns the parts in the order of a manifest's groups.
std::vector<SavedPart> saved_parts(ModelStates& model);

/// Returns the groups of a manifest. A model has one for each optimizer of each trained group and one for each saved
/// frozen group, both as in saved_parts(). Then comes one for each statistic. Shared arrays and values come last, with
/// a group each.
std::vector<SavedGroup> saved_groups(const CheckpointModels& of);

/// Returns the sections that each rank writes, one per saved group. Rank 0 writes statistics, shared arrays and values.
std::vector<std::vector<ShardSection>> sections_of_ranks(const CheckpointModels& of);

/// Bytes of each rank's shard file, by rank.
std::vector<std::int64_t> shard_bytes(const CheckpointModels& of);
/// The sum over all ranks.
std::int64_t checkpoint_bytes(const CheckpointModels& of);

}  // namespace zero
