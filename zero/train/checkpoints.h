#pragma once
// Checkpoints: the times at which a run is saved, and the handling of failures. A checkpoint that fails is given up
// with one warning, and its remains are removed. Training continues, and the next checkpoint is tried at its time. At
// most one is written in the background.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/save_checkpoint.h"
#include "zero/config/config.h"

namespace zero {

class Checkpoints {
 public:
  struct Parts {
    ModelStates& model;
    RunDescription run;  // rank 0's is written
    std::string root;    // the folder of all checkpoints
    FileCalls& calls;
    Communicator& control;                       // all ranks, with a deadline that allows for one rank writing alone
    std::vector<std::string> spare_places = {};  // directories for states if root has no room, best first
    bool asynchronous = false;  // memory for a copy of this rank's part is expected; equal on all ranks
  };
  /// For people: the consequence if asynchronous checkpoints are impossible.
  static const char* const training_waits;
  /// Allocates the memory of asynchronous copies, so that a node that lacks it shows before the first step. If a node
  /// does, checkpoints are synchronous. Collective.
  Checkpoints(const CheckpointConfig& config, Parts parts);

  /// True if a checkpoint follows step number `steps` of a run of `total`.
  bool due(std::int64_t steps, std::int64_t total) const;

  /// Notes that the run continues from its checkpoint of that step.
  void resumed(std::int64_t steps) { saved_steps_ = steps; }

  /// Returns whether the checkpoint exists. Waits for the previous one first. Collective; the same on all ranks.
  bool save(const RunPosition& position);

  /// An asynchronous checkpoint returns when the copy is taken, a synchronous one when it is saved. Waits for the
  /// previous one first. Collective.
  void begin(const RunPosition& position);
  /// True while an asynchronous checkpoint is neither saved nor given up. The same on all ranks.
  bool under_way() const { return under_way_ != nullptr; }
  /// Progress of this rank's part of the checkpoint under way; SaveProgress::ended if there is none. Not collective.
  SaveProgress progress() const;
  /// Time that this rank has spent on it so far; 0 if none is under way. Not collective.
  std::chrono::duration<double> time() const;
  /// Continues the checkpoint under way, or gives it up if a rank has `failed`. Call it after a failure, or when all
  /// ranks have ended their part. Collective; `failed` is the same on all ranks.
  void go_on(bool failed);
  /// Waits for the checkpoint under way, if there is one. Collective.
  void finish();

  /// Saves states that would otherwise be lost, and returns the folder of their checkpoint. That is below root or, if
  /// root fails, in a new folder of a spare place that has room and that all nodes share. Returns none if every place
  /// fails. Collective; the same on all ranks.
  std::optional<std::string> save_anywhere(const RunPosition& position);

  /// For people: the next steps after save_anywhere() returned `saved`, as the rest of an error's message.
  std::string remedy(const std::optional<std::string>& saved) const;

  /// Step of the newest checkpoint that this run has written or continues from; -1: there is none.
  std::int64_t saved_steps() const { return saved_steps_; }
  /// True if the checkpoint of that step exists or is being written.
  bool has(std::int64_t steps) const { return saved_steps_ == steps || (under_way_ && position_.steps == steps); }

  /// True if the last attempt was given up.
  bool failed() const { return failed_; }
  CheckpointFolders& folders() { return folders_; }

 private:
  std::int64_t bytes_needed() const;
  /// Returns the reason of a failure, or none.
  std::optional<std::string> save_into(CheckpointFolders& folders, const RunPosition& position);
  /// Makes a new folder there, on rank 0. Returns "" if there is no room or none can be made.
  std::string new_folder_in(const std::string& place) const;
  std::optional<std::string> save_into_place(const std::string& place, const RunPosition& position);
  /// Runs `work` and books its time. `work` returns whether the checkpoint continues. A failure ends it, as its
  /// completion does.
  void tend(const std::function<bool()>& work);
  /// Logs the completion of a checkpoint, or its `failure`. Returns true if it exists.
  bool conclude(const RunPosition& position, const std::optional<std::string>& failure, const std::string& how_long);
  /// Notes in the run's mark that a checkpoint exists.
  void note_saved_once();
  void tell_of_failure(const RunPosition& position, const std::string& why) const;

  CheckpointConfig config_;
  Parts parts_;
  CheckpointFolders folders_;
  bool failed_ = false;
  bool noted_ = false;
  std::int64_t saved_steps_ = -1;  // step of the newest one below root that holds this run's states

  std::optional<HostArena> copy_;
  RunPosition position_;                         // of the checkpoint under way
  std::chrono::steady_clock::time_point begin_;  // of the checkpoint under way
  std::chrono::duration<double> waited_{};       // time that training has waited for it
  std::unique_ptr<CheckpointSave> under_way_;    // declared after copy_, so that it ends first
};

}  // namespace zero
