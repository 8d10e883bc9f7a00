#pragma once
// Checkpoints: when a run is saved, and what happens when that fails: the checkpoint is given up with one warning, what
// was begun of it is removed, and training goes on from memory, which is worth more than a stop; the next one is tried
// at its time.
#include <cstdint>
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
    Communicator& control;                       // the ranks, with the patience for one that writes for all
    std::vector<std::string> spare_places = {};  // directories for states that find no room below root, best first
  };
  Checkpoints(const CheckpointConfig& config, Parts parts);

  /// Whether one is to be written after so many steps of a run of `total`.
  bool due(std::int64_t steps, std::int64_t total) const;

  /// The run goes on from its checkpoint after so many steps.
  void resumed(std::int64_t steps) { saved_steps_ = steps; }

  /// Whether it is there. Collective; the same on all ranks.
  bool save(const RunPosition& position);

  /// For states that would be lost otherwise: the folder of a checkpoint of `position`, below root or, where that
  /// cannot be, in a new folder of a spare place that has room and that all nodes share. None: nowhere. Collective; the
  /// same on all ranks.
  std::optional<std::string> save_anywhere(const RunPosition& position);

  /// How the user gets on with what save_anywhere() has returned, as the rest of an error's message.
  std::string remedy(const std::optional<std::string>& saved) const;

  /// Whether the last one that was tried was given up.
  bool failed() const { return failed_; }
  CheckpointFolders& folders() { return folders_; }

 private:
  std::int64_t bytes_needed() const;
  /// Why it failed, if it did.
  std::optional<std::string> save_into(CheckpointFolders& folders, const RunPosition& position);
  std::optional<std::string> save_into_place(const std::string& place, const RunPosition& position);
  void tell_of_failure(const RunPosition& position, const std::string& why) const;

  CheckpointConfig config_;
  Parts parts_;
  CheckpointFolders folders_;
  bool failed_ = false;
  std::int64_t saved_steps_ = -1;  // of the newest one below root that holds what this run has trained
};

}  // namespace zero
