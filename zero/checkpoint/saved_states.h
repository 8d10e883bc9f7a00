#pragma once
// SavedStates: reads the states in a checkpoint by tensor and range, independently of the number of ranks and the
// layout that wrote them.
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
  /// Reads the manifest of a folder; opens shard files on first use. Every member throws DamagedCheckpoint, which names
  /// the file, if contents differ from those written. If contents cannot be read, it throws InputError.
  SavedStates(FileCalls& calls, const std::string& folder);

  const Manifest& manifest() const { return manifest_; }
  const std::string& folder() const { return folder_; }
  /// Returns all tensors with master weights or frozen weights in the checkpoint, in the order of the groups.
  std::vector<TensorSpec> tensors() const { return tensors_with("master"); }
  std::vector<TensorSpec> frozen_tensors() const { return tensors_with("frozen"); }
  /// The saved models, at least one.
  std::vector<SavedModel> models() const;
  /// Names of the owner's extra values, and the values themselves, which are verified and in host memory.
  std::vector<std::string> value_names() const;
  CheckpointValues values();
  bool holds(const std::string& name) const { return places_.contains(name); }
  /// Number of elements of a tensor in the checkpoint.
  std::int64_t numel_of(const std::string& name) const { return places_.at(name).front().spec.full().numel(); }
  /// States of a tensor in the checkpoint.
  const std::vector<StateSpec>& states_of(const std::string& name) const {
    return manifest_.groups[std::size_t(places_.at(name).front().group)].states;
  }
  /// The optimizer that wrote the states of a tensor in the checkpoint; empty: unknown.
  const std::string& optimizer_of(const std::string& name) const {
    return manifest_.groups[std::size_t(places_.at(name).front().group)].optimizer;
  }

  /// One state of a tensor and its destination: elements of the state's type, or block numbers.
  struct Wanted {
    StateSpec state;
    void* to = nullptr;
  };
  /// Reads and verifies elements [begin, begin + count) of a flattened full tensor, whichever slices hold them. Both
  /// ends must be block boundaries. If calls are in ascending order, each chunk of a file is read once. Throws Error if
  /// the tensor has no such state.
  void read(const std::string& name, std::int64_t begin, std::int64_t count, const std::vector<Wanted>& wanted);
  /// Does the same for elements of a slice or a full tensor of this model. `name` is the tensor's name in the
  /// checkpoint, which may differ from the spec's.
  void read_slice(const std::string& name, const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                  const std::vector<Wanted>& wanted);
  /// Reads and verifies every file.
  void verify();
  /// Throws DamagedCheckpoint if the folder lacks a file, or if a file has another size. On another node, a rank may
  /// see a new file later.
  void check_files() const;

 private:
  struct Place {
    int group = -1;
    std::int64_t offset = 0;
    TensorSpec spec = {};
  };
  struct Extent {
    std::int64_t begin, end;  // elements of the group
    int file, section;
  };
  std::vector<TensorSpec> tensors_with(const std::string& weights) const;
  void add_place(int group, const FlatTensor& tensor);
  void read_place(const Place& place, std::int64_t begin, std::int64_t count, const std::vector<Wanted>& wanted);
  ShardReader& reader(int file);
  const Extent& extent_of(int group, std::int64_t element) const;

  FileCalls& calls_;
  std::string folder_;
  Manifest manifest_;
  std::map<std::string, std::vector<Place>>
      places_;                                // by rank of the tensor axis that wrote the slice; one for a full tensor
  std::vector<std::vector<Extent>> extents_;  // by group, sorted by begin
  std::unique_ptr<ShardReader> reader_;       // one file at a time
  int open_file_ = -1;
};

/// Throws InputError unless the checkpoint has the same model names and types and the same value names.
void check_same_models(const SavedStates& saved, const CheckpointModels& models);

/// Throws InputError that names the first trained tensor that only the model or only the checkpoint has. Frozen tensors
/// are compared too if both save them.
void check_same_tensors(const SavedStates& saved, const CheckpointModel& model);

/// Throws InputError that names the first tensor whose states another optimizer wrote. Also throws for the first state
/// or statistic of the model's optimizers that the checkpoint lacks.
void check_same_states(const SavedStates& saved, const CheckpointModel& model);

/// Restores this rank's part of the trained groups, the optimizers' statistics, and frozen weights if both sides save
/// them. ModelStates::resume() must follow. Needs memory for one extra chunk.
void restore_states(SavedStates& saved, const CheckpointModel& model);
/// Restores all models and the arrays they share.
void restore_models(SavedStates& saved, const CheckpointModels& models);

}  // namespace zero
