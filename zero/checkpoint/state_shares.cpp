#include "zero/checkpoint/state_shares.h"

#include <algorithm>

namespace zero {
namespace {

std::vector<FlatLayout> trained_layouts(const Engine& engine) {
  std::vector<FlatLayout> layouts;
  for (const auto& group : engine.groups())
    if (group->spec().trainable) layouts.push_back(group->layout());
  return layouts;
}

std::vector<ShardSection> sections_of(const std::vector<FlatLayout>& layouts, int rank, int ranks) {
  std::vector<ShardSection> sections;
  for (std::size_t g = 0; g < layouts.size(); ++g) {
    const FlatLayout& layout = layouts[g];
    const int shard = rank % layout.shards(), replica = rank / layout.shards(), replicas = ranks / layout.shards();
    const FlatTensor& last = layout.tensors().back();
    const std::int64_t used = last.offset + last.spec.numel();
    const auto cut = [&](int part) {
      return std::min(used, layout.shard_begin(shard) + layout.shard_numel() * part / replicas);
    };
    sections.push_back({int(g), cut(replica), cut(replica + 1) - cut(replica)});
  }
  return sections;
}

}  // namespace

std::vector<SavedGroup> saved_groups(const Engine& engine) {
  std::vector<SavedGroup> groups;
  for (const FlatLayout& layout : trained_layouts(engine)) groups.push_back({layout.tensors(), layout.numel()});
  return groups;
}

std::vector<ShardSection> sections_of(const Engine& engine, int rank, int ranks) {
  return sections_of(trained_layouts(engine), rank, ranks);
}

std::int64_t checkpoint_bytes(const std::vector<FlatLayout>& trained, int ranks, std::int64_t element_bytes) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank)
    sum += ShardFormat(sections_of(trained, rank, ranks), ShardFormat::default_chunk_elements, element_bytes).bytes();
  return sum;
}

}  // namespace zero
