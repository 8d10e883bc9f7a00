#pragma once
// Checkpoints: decides when a run is saved, and handles failures. A checkpoint that fails is abandoned with one
// warning, and its files are removed. Training continues, and the next checkpoint is tried at its time. At most one
// checkpoint at a time is written in the background.
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
    Communicator& control;                       // of all ranks, with a deadline long enough for one rank's writes
    std::vector<std::string> spare_places = {};  // directories for states if root's disk is full, best first
    bool asynchronous = false;  // memory for a copy of this rank's part should suffice; equal on all ranks
  };
  /// Message text: the consequence if asynchronous checkpoints are impossible.
  static const char* const training_waits;
  /// Allocates the memory for asynchronous copies, so that a lack of memory is found before the first step. If a node
  /// lacks memory, checkpoints are synchronous. Collective.
  Checkpoints(const CheckpointConfig& config, Parts parts);

  /// Returns true if a checkpoint follows step number `steps` of a run of `total` steps.
  bool due(std::int64_t steps, std::int64_t total) const;

  /// Notes that the run continues from its checkpoint of that step.
  void resumed(std::int64_t steps) { saved_steps_ = steps; }

  /// Waits for the previous checkpoint, then saves this one. Returns true if it was saved, on all ranks alike.
  /// Collective.
  bool save(const RunPosition& position);

  /// Waits for the previous checkpoint first. Returns when the copy is made if checkpoints are asynchronous, otherwise
  /// when the checkpoint is saved. Collective.
  void begin(const RunPosition& position);
  /// True while an asynchronous checkpoint is in progress. The same on all ranks.
  bool under_way() const { return under_way_ != nullptr; }
  /// Progress of this rank's part of the checkpoint in progress; SaveProgress::ended if there is none. Not collective.
  SaveProgress progress() const;
  /// Time that this rank has spent on the checkpoint in progress; 0 if there is none. Not collective.
  std::chrono::duration<double> time() const;
  /// Continues the checkpoint in progress, or abandons it if a rank has `failed`. Call it after a failure, or when all
  /// ranks have ended their part. `failed` is the same on all ranks. Collective.
  void go_on(bool failed);
  /// Waits for the checkpoint in progress, if there is one. Collective.
  void finish();

  /// Saves states that would otherwise be lost, and returns the folder of their checkpoint. The folder is below root
  /// or, if root fails, new in a spare place that has enough space and that all nodes share. Returns none if every
  /// place fails. The result is the same on all ranks. Collective.
  std::optional<std::string> save_anywhere(const RunPosition& position);

  /// Returns the end of an error message: what the user can do after save_anywhere() returned `saved`.
  std::string remedy(const std::optional<std::string>& saved) const;

  /// Step of the newest checkpoint that this run has written or continued from; -1 if there is none.
  std::int64_t saved_steps() const { return saved_steps_; }
  /// True if the checkpoint of that step exists or is being written.
  bool has(std::int64_t steps) const { return saved_steps_ == steps || (under_way_ && position_.steps == steps); }

  /// True if the last attempt was abandoned.
  bool failed() const { return failed_; }
  CheckpointFolders& folders() { return folders_; }

 private:
  std::int64_t bytes_needed() const;
  /// Returns the reason if saving fails, otherwise none.
  std::optional<std::string> save_into(CheckpointFolders& folders, const RunPosition& position);
  /// Creates a folder in `place`, on rank 0. Returns "" if there is not enough space or the folder cannot be created.
  std::string new_folder_in(const std::string& place) const;
  std::optional<std::string> save_into_place(const std::string& place, const RunPosition& position);
  /// Runs `work` and records its time. `work` returns true if the checkpoint continues. The checkpoint ends when it is
  /// complete or fails.
  void tend(const std::function<bool()>& work);
  /// Logs the completion of a checkpoint, or its `failure`. Returns true if the checkpoint exists.
  bool conclude(const RunPosition& position, const std::optional<std::string>& failure, const std::string& how_long);
  /// Records in the run's mark file that a checkpoint exists.
  void note_saved_once();
  void tell_of_failure(const RunPosition& position, const std::string& why) const;

  CheckpointConfig config_;
  Parts parts_;
  CheckpointFolders folders_;
  bool failed_ = false;
  bool noted_ = false;
  std::int64_t saved_steps_ = -1;  // step of the newest checkpoint below root that holds this run's states

  std::optional<HostArena> copy_;
  RunPosition position_;                         // of the checkpoint in progress
  std::chrono::steady_clock::time_point begin_;  // of the checkpoint in progress
  std::chrono::duration<double> waited_{};       // time that training has waited for that checkpoint
  std::unique_ptr<CheckpointSave> under_way_;    // declared after copy_, so that it is destroyed first
};

}  // namespace zero
