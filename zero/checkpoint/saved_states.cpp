#include "zero/checkpoint/saved_states.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <ranges>
#include <set>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/hash.h"
#include "base/log.h"
#include "zero/checkpoint/damaged_checkpoint.h"
#include "zero/checkpoint/saved_weights.h"
#include "zero/checkpoint/state_shares.h"

namespace zero {

SavedStates::SavedStates(FileCalls& calls, const std::string& folder)
    : calls_(calls), folder_(folder), manifest_(read_manifest(calls, folder)), extents_(manifest_.groups.size()) {
  for (int g = 0; g < int(manifest_.groups.size()); ++g)
    for (const FlatTensor& tensor : manifest_.groups[g].tensors) add_place(g, tensor);
  for (const auto& [name, places] : places_)
    for (int r = 0; r < int(places.size()); ++r) {
      const TensorSpec &spec = places[std::size_t(r)].spec, expected = places.front().spec.of_rank(r);
      if (places[std::size_t(r)].group < 0 || spec.shape != expected.shape || spec.cut != expected.cut)
        throw DamagedCheckpoint(text(folder, ": lacks a slice of ", name));
    }
  for (int f = 0; f < int(manifest_.files.size()); ++f)
    for (int s = 0; s < int(manifest_.files[f].sections.size()); ++s) {
      const ShardSection& section = manifest_.files[f].sections[s];
      if (section.count > 0) extents_[section.group].push_back({section.begin, section.begin + section.count, f, s});
    }
  for (auto& extents : extents_)
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
}

void SavedStates::add_place(int group, const FlatTensor& tensor) {
  std::vector<Place>& places = places_[tensor.spec.name];
  const auto& cut = tensor.spec.cut;
  places.resize(std::size_t(cut ? cut->place.ranks : 1));
  places[std::size_t(cut ? cut->place.rank : 0)] = {group, tensor.offset, tensor.spec};
}

std::vector<TensorSpec> SavedStates::tensors_with(const std::string& weights) const {
  std::vector<TensorSpec> all;
  for (const SavedGroup& group : manifest_.groups) {
    if (group.states.front().name != weights) continue;
    for (const FlatTensor& tensor : group.tensors)
      if (!tensor.spec.cut || tensor.spec.cut->place.rank == 0) all.push_back(tensor.spec.full());
  }
  return all;
}

std::vector<SavedModel> SavedStates::models() const {
  if (!manifest_.models.empty()) return manifest_.models;
  return {{"", "", manifest_.position.updates}};
}

std::vector<std::string> SavedStates::value_names() const {
  const std::string prefix = value_prefix;
  std::vector<std::string> names;
  for (const auto& [name, places] : places_)
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  return names;
}

CheckpointValues SavedStates::values() {
  CheckpointValues values;
  for (const SavedGroup& group : manifest_.groups) {
    const StateSpec& state = group.states.front();
    const std::string prefix = value_prefix;
    if (state.name != value_state) continue;
    for (const FlatTensor& tensor : group.tensors) {
      const TensorSpec& spec = tensor.spec;
      if (!spec.name.starts_with(prefix) || state.bytes(spec.numel()) > manifest_.bytes())
        throw DamagedCheckpoint(folder_ + ": holds no values under the name " + spec.name);
      const at::Tensor value = at::empty(spec.shape, state.type);
      read(spec.name, 0, value.numel(), {{state, value.data_ptr()}});
      values[spec.name.substr(prefix.size())] = value;
    }
  }
  return values;
}

ShardReader& SavedStates::reader(int file) {
  if (file != open_file_) {
    const SavedFile& saved = manifest_.files[file];
    reader_.reset();
    open_file_ = -1;
    reader_ = std::make_unique<ShardReader>(calls_, folder_ + "/" + saved.name,
                                            ShardFormat(saved.sections, manifest_.states(), manifest_.chunk_elements),
                                            saved.mark, manifest_.version == 1 ? linear_checksum : checksum);
    open_file_ = file;
  }
  return *reader_;
}

const SavedStates::Extent& SavedStates::extent_of(int group, std::int64_t element) const {
  const auto& extents = extents_[group];
  const auto behind = std::upper_bound(extents.begin(), extents.end(), element,
                                       [](std::int64_t e, const Extent& x) { return e < x.begin; });
  if (behind == extents.begin() || (behind - 1)->end <= element)
    throw DamagedCheckpoint(text(folder_, ": no file holds element ", element, " of group ", group));
  return *(behind - 1);
}

namespace {

/// Returns the destinations of elements from `done` to the end.
std::vector<SavedStates::Wanted> moved(const std::vector<SavedStates::Wanted>& wanted, std::int64_t done) {
  std::vector<SavedStates::Wanted> behind = wanted;
  for (SavedStates::Wanted& one : behind) one.to = static_cast<std::byte*>(one.to) + one.state.bytes(done);
  return behind;
}

}  // namespace

void SavedStates::read(const std::string& name, std::int64_t begin, std::int64_t count,
                       const std::vector<Wanted>& wanted) {
  const auto found = places_.find(name);
  if (found == places_.end()) throw Error(folder_ + ": holds no " + name);
  const std::vector<Place>& places = found->second;
  // Slices are read one after the other, so that each slice's files are read sequentially.
  for (int r = 0; r < int(places.size()); ++r)
    for_each_slice_run(places.front().spec, begin, count,
                       [&](int rank, std::int64_t slice_begin, std::int64_t done, std::int64_t n) {
                         if (rank == r) read_place(places[std::size_t(r)], slice_begin, n, moved(wanted, done));
                       });
}

void SavedStates::read_slice(const std::string& name, const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                             const std::vector<Wanted>& wanted) {
  if (!slice.cut) return read(name, begin, count, wanted);
  const auto found = places_.find(name);
  if (found != places_.end() && found->second.size() > 1) {
    const auto rank = std::size_t(slice.cut->place.rank);
    if (rank < found->second.size() && found->second[rank].spec.cut == slice.cut)
      return read_place(found->second[rank], begin, count, wanted);
  }
  for_each_run(slice, begin, count, [&](std::int64_t full_begin, std::int64_t done, std::int64_t n) {
    read(name, full_begin, n, moved(wanted, done));
  });
}

void SavedStates::read_place(const Place& place, std::int64_t begin, std::int64_t count,
                             const std::vector<Wanted>& wanted) {
  const std::vector<StateSpec>& states = manifest_.groups[std::size_t(place.group)].states;
  std::vector<std::byte*> to(states.size());
  for (const Wanted& one : wanted) {
    const auto state = std::find(states.begin(), states.end(), one.state);
    if (state == states.end())
      throw Error(text(folder_, ": holds no ", one.state.name, " of ", place.spec.name,
                       " as this run keeps it: the optimizer of that tensor was another one"));
    to[std::size_t(state - states.begin())] = static_cast<std::byte*>(one.to);
  }
  const std::int64_t first = place.offset + begin;
  for (std::int64_t done = 0; done < count;) {
    const Extent& extent = extent_of(place.group, first + done);
    const std::int64_t n = std::min(count - done, extent.end - first - done);
    std::vector<void*> at;
    for (std::size_t s = 0; s < to.size(); ++s) at.push_back(to[s] ? to[s] + states[s].bytes(done) : nullptr);
    reader(extent.file).read(extent.section, first + done, n, at);
    done += n;
  }
}

void SavedStates::verify() {
  for (int f = 0; f < int(manifest_.files.size()); ++f) reader(f).verify();
}

void SavedStates::check_files() const {
  for (const SavedFile& file : manifest_.files) {
    const std::string path = folder_ + "/" + file.name;
    const FileFacts facts = facts_of(path, calls_);
    if (facts.kind == FileFacts::Kind::absent) throw DamagedCheckpoint(path + ": is missing");
    if (facts.bytes != file.mark.bytes)
      throw DamagedCheckpoint(text(path, ": has ", facts.bytes, " bytes and was written with ", file.mark.bytes));
  }
}

namespace {

/// `kind`: "trained" or "frozen" groups of the model; `held`: the checkpoint's tensors of that kind.
void check_tensors(const std::string& folder, const std::vector<TensorSpec>& held, const CheckpointModel& model,
                   const std::vector<ParameterGroup*>& groups, const std::string& kind) {
  const std::string remedy = ": it is of another model, or of one with other parameters frozen";
  std::map<std::string, std::vector<std::int64_t>> stored;
  for (const TensorSpec& spec : held)
    if (spec.name.starts_with(model.full(""))) stored[spec.name] = spec.shape;
  for (const ParameterGroup* group : groups)
    for (const FlatTensor& tensor : group->layout().tensors()) {
      const std::string name = model.full(tensor.spec.name);
      const auto found = stored.find(name);
      if (found == stored.end())
        throw InputError(folder + ": does not hold " + name + ", which is " + kind + " here" + remedy);
      if (found->second != tensor.spec.full().shape)
        throw InputError(folder + ": " + name + " has another shape there" + remedy);
      stored.erase(found);
    }
  if (!stored.empty())
    throw InputError(folder + ": holds " + stored.begin()->first + ", which is not " + kind + " here" + remedy);
}

}  // namespace

void check_same_tensors(const SavedStates& saved, const CheckpointModel& model) {
  std::vector<ParameterGroup*> trained;
  for (const auto& group : model.states.groups())
    if (group->spec().trainable) trained.push_back(group.get());
  check_tensors(saved.folder(), saved.tensors(), model, trained, "trained");
  if (model.states.options().save_frozen && !saved.frozen_tensors().empty())
    check_tensors(saved.folder(), saved.frozen_tensors(), model, saved_frozen(model.states), "frozen");
}

namespace {

std::string listed(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

/// The models by name, with their types if known.
std::map<std::string, std::string> types_of(const auto& models) {
  std::map<std::string, std::string> types;
  for (const auto& model : models) types[model.name] = model.type;
  return types;
}

std::string told(const std::map<std::string, std::string>& models) {
  if (models.size() == 1 && models.begin()->first.empty()) return "one model without a name";
  std::set<std::string> names;
  for (const auto& [name, type] : models) names.insert(name);
  return "the models " + listed(names);
}

/// The first components of names that contain a slash.
std::set<std::string> first_parts(const auto& names) {
  std::set<std::string> parts;
  for (const std::string& name : names) parts.insert(name.substr(0, name.find('/')));
  return parts;
}

}  // namespace

void check_same_models(const SavedStates& saved, const CheckpointModels& models) {
  const auto there = types_of(saved.models()), here = types_of(models.models);
  if (!std::ranges::equal(std::views::keys(there), std::views::keys(here)))
    throw InputError(saved.folder() + ": holds the states of " + told(there) + ", and those of " + told(here) +
                     " are asked for: load the models that were saved, each by the name that it was saved under");
  for (const auto& [name, type] : there)
    if (!type.empty() && !here.at(name).empty() && type != here.at(name))
      throw InputError(saved.folder() + ": holds the state of a " + type +
                       (name.empty() ? "" : " under the name " + name) + ", and the model here is a " + here.at(name) +
                       ": it is another model's. A class that was renamed keeps its states by its former name, which "
                       "its constructor passes to torch::nn::Module(name)");
  if (!models.values) return;
  const std::set<std::string> held = first_parts(saved.value_names()),
                              wanted = first_parts(std::views::keys(*models.values));
  if (held != wanted)
    throw InputError(saved.folder() + ": holds the values " + listed(held) + ", and " + listed(wanted) +
                     " are asked for: load all values that were saved, and no others");
}

namespace {

[[noreturn]] void refuse_optimizer(const SavedStates& saved, const std::string& what) {
  throw InputError(
      saved.folder() + ": " + what +
      ": the states of one optimizer are none of another. Go on with the optimizer and the groups that it was written "
      "with, or begin a run with its weights (zero_export)");
}

/// Returns the run's optimizer, for a manifest that does not record which optimizer wrote which states; empty: unknown.
std::string recorded_optimizer(const SavedStates& saved) {
  for (const auto& [key, value] : saved.manifest().run.settings)
    if (key == "optimizer.name" && value.size() > 2) return value.substr(1, value.size() - 2);  // without the quotes
  return "";
}

}  // namespace

void check_same_states(const SavedStates& saved, const CheckpointModel& model) {
  const std::string wrote_run = recorded_optimizer(saved), runs = model.states.options().optimizer.name;
  for (const auto& group : model.states.groups())
    for (const auto& shard : group->states())
      for (int t = 0; t < int(shard->layout().tensors().size()); ++t) {
        const std::string name = model.full(shard->layout().spec(t).name);
        const std::string &needs = shard->optimizer().name(), &wrote = saved.optimizer_of(name);
        if (!wrote.empty() && wrote != needs)
          refuse_optimizer(saved, wrote + " wrote the states of " + name + ", which " + needs + " is to train now");
        if (wrote.empty() && !wrote_run.empty() && wrote_run != runs)
          refuse_optimizer(saved, "is of a run with " + wrote_run + ", and this one has " + runs);
        const std::vector<StateSpec>& held = saved.states_of(name);
        for (const StateSpec& state : group->visited_states(*shard))
          if (std::find(held.begin(), held.end(), state) == held.end())
            refuse_optimizer(saved, "holds no " + state.name + " of " + name + ", which this run's optimizer needs");
      }
  for (const KeptArray& array : model.states.kept())
    if (array.required && !saved.holds(model.full(array.name)))
      throw InputError(saved.folder() + ": holds no " + model.full(array.name) +
                       ": it is of another model, or of one with other buffers; build the module as it was");
  for (const SavedStatistic& statistic : saved_statistics(model.states)) {
    const std::string name = model.full(statistic.name);
    const bool held = saved.holds(name);
    if (statistic.required && !held) refuse_optimizer(saved, "holds no " + name + ", which is needed here");
    const std::int64_t needs = statistic.values.numel();
    if (held && saved.numel_of(name) != needs)
      throw InputError(text(saved.folder(), ": holds ", saved.numel_of(name), " numbers of ", name, ", and ", needs,
                            " are needed here: it is of another model, or of a version of zero whose optimizer kept "
                            "others; begin with its weights"));
  }
}

namespace {

// The padding between tensors is zero.
void restore_chunk(SavedStates& saved, const CheckpointModel& model, const StateShard& shard,
                   const std::vector<StateSpec>& specs, const StateChunk& chunk) {
  for (std::size_t s = 0; s < specs.size(); ++s)
    std::memset(chunk.states[s], 0, std::size_t(specs[s].bytes(chunk.end - chunk.begin)));
  for (const FlatSlice& slice : shard.layout().slices(shard.begin() + chunk.begin, chunk.end - chunk.begin)) {
    std::vector<SavedStates::Wanted> wanted;
    for (std::size_t s = 0; s < specs.size(); ++s)
      wanted.push_back({specs[s], static_cast<std::byte*>(chunk.states[s]) + specs[s].bytes(slice.range_begin)});
    const TensorSpec& spec = shard.layout().spec(slice.tensor);
    saved.read_slice(model.full(spec.name), spec, slice.tensor_begin, slice.count, wanted);
  }
}

// If the checkpoint was written without frozen weights, they stay as loaded.
void restore_frozen(SavedStates& saved, const CheckpointModel& model) {
  if (saved.frozen_tensors().empty()) return;
  SavedWeights source(std::shared_ptr<SavedStates>(std::shared_ptr<void>(), &saved), model.full(""));
  for (ParameterGroup* group : saved_frozen(model.states))
    if (group->is_here()) group->read(source);
}

/// Keeps arrays that the checkpoint lacks, and optional arrays whose length differs there.
void restore_array(SavedStates& saved, const std::string& name, const SavedStatistic& array) {
  if (!saved.holds(name)) return;
  if (!array.required && saved.numel_of(name) != array.values.numel()) return;
  const at::Tensor values = at::empty({array.values.numel()}, array.values.scalar_type());
  saved.read(name, 0, values.numel(), {{array.state(), values.data_ptr()}});
  array.values.copy_(values);
}

}  // namespace

void restore_states(SavedStates& saved, const CheckpointModel& model) {
  for (const auto& group : model.states.groups())
    for (const auto& shard : group->states()) {
      if (!group->is_here()) continue;
      const std::vector<StateSpec> specs = group->visited_states(*shard);
      group->visit_states(*shard, StateAccess::write,
                          [&](const StateChunk& chunk) { restore_chunk(saved, model, *shard, specs, chunk); });
    }
  restore_frozen(saved, model);
  for (const SavedStatistic& statistic : saved_statistics(model.states))
    restore_array(saved, model.full(statistic.name), statistic);
}

void restore_models(SavedStates& saved, const CheckpointModels& models) {
  for (const CheckpointModel& model : models.models) restore_states(saved, model);
  for (const SavedStatistic& array : shared_arrays(models)) restore_array(saved, array.name, array);
}

}  // namespace zero
