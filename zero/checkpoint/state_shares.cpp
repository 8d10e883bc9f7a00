#include "zero/checkpoint/state_shares.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace zero {
namespace {

/// A rank's index among the holders of different parts, and among the replicas of its part.
struct Place {
  int holder = 0, replica = 0, replicas = 1;
};

/// The share of the holder's elements [begin, end) that the replica at this place writes, in whole blocks.
ShardSection share_of(std::int64_t begin, std::int64_t end, std::int64_t grain, int group, const Place& place) {
  const auto cut = [&](int part) {
    return part == place.replicas ? end : begin + (end - begin) * part / place.replicas / grain * grain;
  };
  const std::int64_t count = cut(place.replica + 1) - cut(place.replica);
  return {group, count ? cut(place.replica) : 0, count};
}

/// The section of a part that the rank at this place writes.
ShardSection section_of(const SavedPart& part, int group, const Place& place) {
  const std::int64_t begin = part.flat.shard_begin(place.holder), end = begin + part.flat.shard_numel();
  if (!part.shard) return share_of(begin, end, 1, group, place);
  return share_of(part.layout->position_of(begin), part.layout->position_of(end),
                  largest_grain(part.shard->store().states()), group, place);
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

std::vector<ParameterGroup*> saved_frozen(ModelStates& model) {
  std::vector<ParameterGroup*> frozen;
  for (const auto& group : model.groups())
    if (model.options().save_frozen && !group->spec().trainable && group->weights().format().is_plain())
      frozen.push_back(group.get());
  return frozen;
}

std::vector<SavedPart> saved_parts(ModelStates& model) {
  std::vector<SavedPart> parts;
  const auto add = [&](ParameterGroup& group, StateShard* shard) {
    const int slices = group.spec().cut ? model.mesh().size(MeshAxis::tensor) : 1;
    for (int slice = 0; slice < slices; ++slice) {
      SavedPart part{&group, shard, slice, group.spec().cut ? group.layout().of_rank(slice) : group.layout()};
      if (shard) part.layout = shard->layout().of_rank(part.flat);
      parts.push_back(std::move(part));
    }
  };
  for (const auto& group : model.groups())
    for (const auto& shard : group->states()) add(*group, shard.get());
  for (ParameterGroup* group : saved_frozen(model)) add(*group, nullptr);
  return parts;
}

StateSpec frozen_state(const ParameterGroup& group) { return {"frozen", group.weights().format().type()}; }

namespace {

void add_groups(const CheckpointModel& model, std::vector<SavedGroup>& groups) {
  const auto add = [&](SavedGroup group) {
    for (FlatTensor& tensor : group.tensors) tensor.spec.name = model.full(tensor.spec.name);
    groups.push_back(std::move(group));
  };
  for (const SavedPart& part : saved_parts(model.states)) {
    if (part.shard)
      add({part.layout->saved_tensors(), part.layout->numel(), part.group->visited_states(*part.shard),
           part.shard->optimizer().name()});
    else
      add({part.flat.tensors(), part.flat.numel(), {frozen_state(*part.group)}});
  }
}

void add_group(const std::string& name, const std::vector<std::int64_t>& shape, const StateSpec& state,
               std::vector<SavedGroup>& groups) {
  const TensorSpec tensor{name, shape};
  groups.push_back({{{tensor, 0, 0}}, tensor.numel(), {state}});
}

void add_sections(ModelStates& states, const std::vector<SavedPart>& parts, int rank,
                  std::vector<ShardSection>& sections) {
  const MeshShape& mesh = states.mesh().shape();
  for (const SavedPart& part : parts) {
    const Place place{mesh.index(rank, states.sharing_axes(part.group->spec())),
                      mesh.index(rank, states.replica_axes()), mesh.size(states.replica_axes())};
    const int group = int(sections.size());
    sections.push_back(part.is_held_by(rank, mesh) ? section_of(part, group, place) : ShardSection{group, 0, 0});
  }
}

}  // namespace

std::vector<SavedStatistic> shared_arrays(const CheckpointModels& of) {
  std::vector<SavedStatistic> all;
  for (const KeptArray& array : of.kept) all.push_back({array.name, array.values, array.required});
  return all;
}

std::vector<SavedGroup> saved_groups(const CheckpointModels& of) {
  std::vector<SavedGroup> groups;
  for (const CheckpointModel& model : of.models) {
    add_groups(model, groups);
    for (const SavedStatistic& statistic : saved_statistics(model.states))
      add_group(model.full(statistic.name), {statistic.values.numel()}, statistic.state(), groups);
  }
  for (const SavedStatistic& array : shared_arrays(of))
    add_group(array.name, {array.values.numel()}, array.state(), groups);
  if (of.values)
    for (const auto& [name, value] : *of.values)
      add_group(value_prefix + name, value.sizes().vec(), {value_state, value.scalar_type()}, groups);
  return groups;
}

std::vector<std::vector<ShardSection>> sections_of_ranks(const CheckpointModels& of) {
  std::vector<std::vector<SavedPart>> parts;  // by model
  std::vector<std::vector<SavedStatistic>> statistics;
  for (const CheckpointModel& model : of.models) {
    parts.push_back(saved_parts(model.states));
    statistics.push_back(saved_statistics(model.states));
  }
  std::vector<std::vector<ShardSection>> all;
  for (int rank = 0; rank < of.models.front().states.mesh().shape().ranks(); ++rank) {
    std::vector<ShardSection>& sections = all.emplace_back();
    const auto add_whole = [&](const at::Tensor& values) {
      sections.push_back({int(sections.size()), 0, rank == 0 ? values.numel() : 0});
    };
    for (std::size_t m = 0; m < of.models.size(); ++m) {
      add_sections(of.models[m].states, parts[m], rank, sections);
      for (const SavedStatistic& statistic : statistics[m]) add_whole(statistic.values);
    }
    for (const SavedStatistic& array : shared_arrays(of)) add_whole(array.values);
    if (of.values)
      for (const auto& [name, value] : *of.values) add_whole(value);
  }
  return all;
}

namespace {

/// The chunks of a rank's file.
struct FileChunks {
  std::int64_t bytes = 0, count = 0;
};

/// The chunks of sections with the same states. Most sections of a part have the same number of elements.
class SectionChunks {
 public:
  explicit SectionChunks(const std::vector<StateSpec>& states) : states_{states} {}

  void add(std::int64_t elements, FileChunks& file) {
    if (elements == 0) return;
    const auto [place, is_new] = known_.try_emplace(elements);
    if (is_new) {
      const ShardFormat format({{0, 0, elements}}, states_, ShardFormat::default_chunk_elements);
      place->second = {format.table_offset(), format.chunks()};
    }
    file.bytes += place->second.bytes;
    file.count += place->second.count;
  }

 private:
  std::vector<std::vector<StateSpec>> states_;
  std::map<std::int64_t, FileChunks> known_;
};

/// Adds a part's sections to the files of the ranks that hold it. It looks at no other ranks.
void add_chunks(ModelStates& states, const SavedPart& part, SectionChunks& chunks, std::vector<FileChunks>& files) {
  const MeshShape& mesh = states.mesh().shape();
  const GroupSpec& spec = part.group->spec();
  const AxisSet sharing = states.sharing_axes(spec), replicas = states.replica_axes();
  const AxisSet fixed = spec.cut ? axes::model : AxisSet(MeshAxis::pipeline);
  int first = mesh.rank_at(0, MeshAxis::pipeline, spec.stage);
  if (spec.cut) first = mesh.rank_at(first, MeshAxis::tensor, part.slice);
  for (int i = 0; i < mesh.size(fixed.others()); ++i) {
    const int rank = mesh.rank_at(first, fixed.others(), i);
    const Place place{mesh.index(rank, sharing), mesh.index(rank, replicas), mesh.size(replicas)};
    chunks.add(section_of(part, 0, place).count, files[std::size_t(rank)]);
  }
}

}  // namespace

std::vector<std::int64_t> shard_bytes(const CheckpointModels& of) {
  const std::vector<SavedGroup> groups = saved_groups(of);
  std::vector<FileChunks> files(std::size_t(of.models.front().states.mesh().shape().ranks()));
  auto group = groups.begin();
  for (const CheckpointModel& model : of.models) {
    for (const SavedPart& part : saved_parts(model.states)) {
      SectionChunks chunks((group++)->states);
      add_chunks(model.states, part, chunks, files);
    }
    for (const SavedStatistic& statistic : saved_statistics(model.states))
      SectionChunks((group++)->states).add(statistic.values.numel(), files.front());
  }
  for (; group != groups.end(); ++group) SectionChunks(group->states).add(group->numel, files.front());
  std::vector<std::int64_t> bytes;
  for (const FileChunks& file : files) bytes.push_back(file.bytes + ShardFormat::table_bytes_of(file.count));
  return bytes;
}

std::int64_t checkpoint_bytes(const CheckpointModels& of) {
  const std::vector<std::int64_t> bytes = shard_bytes(of);
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

}  // namespace zero
