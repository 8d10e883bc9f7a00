#include "zero/checkpoint/state_shares.h"

#include <algorithm>

namespace zero {
namespace {

/// Of a rank among those that hold parts, and among the replicas of its part.
struct Place {
  int holder = 0, replica = 0, replicas = 1;
};

/// What the rank at this place writes of one optimizer's part of a group.
ShardSection section_of(const StateShard& shard, const FlatLayout& flat, int group, const Place& place) {
  const auto [holder, replica, replicas] = place;
  const StateLayout& layout = shard.layout();
  const std::int64_t begin = layout.position_of(flat.shard_begin(holder)),
                     end = layout.position_of(flat.shard_begin(holder) + flat.shard_numel()),
                     grain = largest_grain(shard.store().states());
  const auto cut = [&, replicas = replicas](int part) {
    return part == replicas ? end : begin + (end - begin) * part / replicas / grain * grain;
  };
  const std::int64_t count = cut(replica + 1) - cut(replica);
  return {group, count ? cut(replica) : 0, count};
}

void add_statistics(const std::vector<StatisticSpec>& specs, const std::string& tensor, const at::Tensor& kept,
                    std::vector<SavedStatistic>& all) {
  std::int64_t begin = 0;
  for (const StatisticSpec& spec : specs) {
    if (!spec.name.empty()) all.push_back({spec.name + ":" + tensor, kept.narrow(0, begin, spec.numel)});
    begin += spec.numel;
  }
}

}  // namespace

std::vector<SavedStatistic> saved_statistics(ModelStates& model) {
  std::vector<SavedStatistic> all;
  for (int i = 0; i < model.optimizers().size(); ++i) {
    const Optimizer& optimizer = model.optimizers()[i];
    const Statistics& statistics = model.statistics(i);
    const std::vector<TensorSpec>& tensors = model.optimizer_tensors(i);
    for (int t = 0; t < int(tensors.size()); ++t)
      add_statistics(optimizer.statistics(tensors[std::size_t(t)].shape), tensors[std::size_t(t)].name,
                     statistics.kept(t), all);
    add_statistics(optimizer.run_statistics(), "", statistics.kept_of_run(), all);
  }
  for (const KeptArray& array : model.kept()) all.push_back({array.name, array.values, array.required});
  return all;
}

std::vector<SavedGroup> saved_groups(ModelStates& model) {
  std::vector<SavedGroup> groups;
  for (const auto& group : model.groups())
    for (const auto& shard : group->states())
      groups.push_back({shard->layout().saved_tensors(), shard->layout().numel(), group->visited_states(*shard),
                        shard->optimizer().name()});
  for (const SavedStatistic& statistic : saved_statistics(model)) {
    const std::int64_t numel = statistic.values.numel();
    groups.push_back({{{{statistic.name, {numel}}, 0, 0}}, numel, {statistic.state()}});
  }
  return groups;
}

std::vector<std::vector<ShardSection>> sections_of_ranks(ModelStates& model) {
  const MeshShape& mesh = model.mesh().shape();
  const std::vector<SavedStatistic> statistics = saved_statistics(model);
  std::vector<std::vector<ShardSection>> all;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Place place{mesh.index(rank, model.sharing_axes()), mesh.index(rank, model.replica_axes()),
                      mesh.size(model.replica_axes())};
    std::vector<ShardSection>& sections = all.emplace_back();
    for (const auto& group : model.groups())
      for (const auto& shard : group->states())
        sections.push_back(section_of(*shard, group->layout(), int(sections.size()), place));
    for (const SavedStatistic& statistic : statistics)
      sections.push_back({int(sections.size()), 0, rank == 0 ? statistic.values.numel() : 0});
  }
  return all;
}

std::int64_t checkpoint_bytes(ModelStates& model) {
  std::vector<std::vector<StateSpec>> states;
  for (const SavedGroup& group : saved_groups(model)) states.push_back(group.states);
  std::int64_t sum = 0;
  for (std::vector<ShardSection>& sections : sections_of_ranks(model))
    sum += ShardFormat(std::move(sections), states, ShardFormat::default_chunk_elements).bytes();
  return sum;
}

}  // namespace zero
