#pragma once
// StateShares: which rank writes which states. Where several ranks hold the same states (stage 0, replicas of hybrid
// sharding) each writes an equal part, so that a save takes 1/N of the time at every stage.
#include <vector>

#include "zero/checkpoint/manifest.h"
#include "zero/core/engine.h"

namespace zero {

/// The trained groups of the engine, in order, as a manifest tells of them.
std::vector<SavedGroup> saved_groups(const Engine& engine);

/// What a rank of `ranks` writes: a section per trained group. Padding at a group's end is left out.
std::vector<ShardSection> sections_of(const Engine& engine, int rank, int ranks);

/// Bytes of the shard files of all ranks.
std::int64_t checkpoint_bytes(const std::vector<FlatLayout>& trained, int ranks, std::int64_t element_bytes);

}  // namespace zero
