#pragma once
// Checkpoints: when a run is saved, and what happens when that fails: the checkpoint is given up with one warning, what
// was begun of it is removed, and training goes on from memory, which is worth more than a stop; the next one is tried
// at its time. One at most is written behind the run.
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
    Communicator& control;                       // the ranks, with the patience for one that writes for all
    std::vector<std::string> spare_places = {};  // directories for states that find no room below root, best first
    bool asynchronous = false;  // there should be memory for a copy of this rank's part; the same on all ranks
  };
  /// What becomes of asynchronous ones where they cannot be, for people.
  static const char* const training_waits;
  /// Takes the copy's memory, where there is to be one, so that a node that lacks it shows before the first step: then
  /// none are asynchronous. Collective.
  Checkpoints(const CheckpointConfig& config, Parts parts);

  /// True if one is to be written after so many steps of a run of `total`.
  bool due(std::int64_t steps, std::int64_t total) const;

  /// The run goes on from its checkpoint after so many steps.
  void resumed(std::int64_t steps) { saved_steps_ = steps; }

  /// True if it is there. Waits for the one before first. Collective; the same on all ranks.
  bool save(const RunPosition& position);

  /// Where they are asynchronous the run goes on when the copy is taken, else when it is saved. Waits for the one before
  /// first. Collective.
  void begin(const RunPosition& position);
  /// Of a checkpoint that was begun: whether it is not known yet to be there or to be given up. The same on all ranks.
  bool under_way() const { return under_way_ != nullptr; }
  /// Of this rank's part of it; ended where none is under way. Not collective.
  SaveProgress progress() const;
  /// What this rank has spent on it so far; 0 where none is under way. Not collective.
  std::chrono::duration<double> time() const;
  /// What all ranks know of each other's progress: from a failure on, or when all have ended, the one under way goes on,
  /// or is given up. Collective; the same on all ranks, of whom one has failed where `failed`, and all have ended else.
  void go_on(bool failed);
  /// Waits for the one under way, if there is one. Collective.
  void finish();

  /// For states that would be lost otherwise: the folder of a checkpoint of `position`, below root or, where that
  /// cannot be, in a new folder of a spare place that has room and that all nodes share. None: nowhere. Collective; the
  /// same on all ranks.
  std::optional<std::string> save_anywhere(const RunPosition& position);

  /// How the user gets on with what save_anywhere() has returned, as the rest of an error's message.
  std::string remedy(const std::optional<std::string>& saved) const;

  /// Of the newest one that this run has written, or goes on from; -1: there is none.
  std::int64_t saved_steps() const { return saved_steps_; }
  /// True if there is one after so many steps, or it is being written.
  bool has(std::int64_t steps) const { return saved_steps_ == steps || (under_way_ && position_.steps == steps); }

  /// True if the last one that was tried was given up.
  bool failed() const { return failed_; }
  CheckpointFolders& folders() { return folders_; }

 private:
  std::int64_t bytes_needed() const;
  /// Why it failed, if it did.
  std::optional<std::string> save_into(CheckpointFolders& folders, const RunPosition& position);
  /// A new folder there; empty where there is no room, or none can be made. Rank 0's.
  std::string new_folder_in(const std::string& place) const;
  std::optional<std::string> save_into_place(const std::string& place, const RunPosition& position);
  /// Begins or goes on, by the clock: a failure ends the one under way, as its completion does.
  void tend(const std::function<bool()>& work);
  /// It is there, or it is given up for the reason that is named. Whether it is there.
  bool conclude(const RunPosition& position, const std::optional<std::string>& failure, const std::string& how_long);
  /// Notes in the run's mark that there is a checkpoint.
  void note_saved_once();
  void tell_of_failure(const RunPosition& position, const std::string& why) const;

  CheckpointConfig config_;
  Parts parts_;
  CheckpointFolders folders_;
  bool failed_ = false;
  bool noted_ = false;
  std::int64_t saved_steps_ = -1;  // of the newest one below root that holds what this run has trained

  std::optional<HostArena> copy_;
  RunPosition position_;                         // of the one under way
  std::chrono::steady_clock::time_point begin_;  // of it
  std::chrono::duration<double> waited_{};       // the run, for it
  std::unique_ptr<CheckpointSave> under_way_;    // before the copy goes, it ends
};

}  // namespace zero
