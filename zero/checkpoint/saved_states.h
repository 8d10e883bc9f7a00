#pragma once
// SavedStates: the states in a checkpoint by tensor and range, however many ranks wrote them, and whatever the layout
// that they are wanted in.
#include <c10/util/accumulate.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/manifest.h"
#include "zero/checkpoint/shard_reader.h"

namespace zero {

class SavedStates {
 public:
  /// Reads the manifest of a folder; shard files are opened when something is asked of them. Every member throws
  /// DamagedCheckpoint, which names the file, when its contents are not what was written, and InputError when it cannot
  /// be read.
  SavedStates(FileCalls& calls, const std::string& folder);

  const Manifest& manifest() const { return manifest_; }
  const std::string& folder() const { return folder_; }
  /// All tensors whose master weights are there, or whose frozen ones are, in the order of the groups.
  std::vector<TensorSpec> tensors() const { return tensors_with("master"); }
  std::vector<TensorSpec> frozen_tensors() const { return tensors_with("frozen"); }
  /// The models whose states are there, at least one.
  std::vector<SavedModel> models() const;
  /// Names of the owner's values, and the values, read and verified; in host memory.
  std::vector<std::string> value_names() const;
  CheckpointValues values();
  bool holds(const std::string& name) const { return places_.contains(name); }
  /// Elements of a tensor that it holds.
  std::int64_t numel_of(const std::string& name) const { return c10::multiply_integers(places_.at(name).shape); }
  /// Of a tensor that it holds.
  const std::vector<StateSpec>& states_of(const std::string& name) const {
    return manifest_.groups[std::size_t(places_.at(name).group)].states;
  }
  /// That wrote the states of a tensor that it holds; empty: unknown.
  const std::string& optimizer_of(const std::string& name) const {
    return manifest_.groups[std::size_t(places_.at(name).group)].optimizer;
  }

  /// One state of a tensor, and where it goes: elements of the state's type, or numbers of its blocks.
  struct Wanted {
    StateSpec state;
    void* to = nullptr;
  };
  /// Elements [begin, begin + count) of the flattened tensor, whole blocks of it, verified. Reading in ascending order
  /// reads each chunk of a file once. Error where the tensor has no such state.
  void read(const std::string& name, std::int64_t begin, std::int64_t count, const std::vector<Wanted>& wanted);
  /// Reads and verifies every file.
  void verify();
  /// DamagedCheckpoint when the folder lacks a file. A rank of another node may see a file later than the one that asks.
  void check_files();

 private:
  struct Place {
    int group;
    std::int64_t offset;
    std::vector<std::int64_t> shape;
  };
  struct Extent {
    std::int64_t begin, end;  // elements of the group
    int file, section;
  };
  std::vector<TensorSpec> tensors_with(const std::string& weights) const;
  ShardReader& reader(int file);
  const Extent& extent_of(int group, std::int64_t element) const;

  FileCalls& calls_;
  std::string folder_;
  Manifest manifest_;
  std::map<std::string, Place> places_;
  std::vector<std::vector<Extent>> extents_;  // by group, by begin
  std::unique_ptr<ShardReader> reader_;       // of one file at a time
  int open_file_ = -1;
};

/// Throws InputError unless the checkpoint is of models with these names and types, and of values with these names.
void check_same_models(const SavedStates& saved, const CheckpointModels& models);

/// Throws InputError that names the first trained tensor of the model that the checkpoint does not hold, or the other
/// way round; the same of frozen ones where both save them.
void check_same_tensors(const SavedStates& saved, const CheckpointModel& model);

/// Throws InputError that names the first tensor whose states another optimizer wrote, or the first state or number of the
/// model's optimizers that the checkpoint does not hold.
void check_same_states(const SavedStates& saved, const CheckpointModel& model);

/// Fills the states of the model's trained groups that this rank holds, what its optimizers keep, and frozen weights where
/// both save them; ModelStates::resume() must follow. Holds one chunk besides.
void restore_states(SavedStates& saved, const CheckpointModel& model);
/// The same of all models; what is kept of all together is filled.
void restore_models(SavedStates& saved, const CheckpointModels& models);

}  // namespace zero
