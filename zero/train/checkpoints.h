#pragma once
// Checkpoints: when a run is saved, and what happens when that fails: the checkpoint is given up with one warning, what was
// begun of it is removed, and training goes on from memory, which is worth more than a stop; the next one is tried at its
// time.
#include <cstdint>
#include <string>

#include "zero/checkpoint/save_checkpoint.h"
#include "zero/train/config.h"

namespace zero {

class Checkpoints {
 public:
  struct Parts {
    Engine& engine;
    RunDescription run;        // rank 0's is written
    std::string root;          // the folder of all checkpoints
    FileCalls& calls;
    Agreement agree;
  };
  Checkpoints(const CheckpointConfig& config, Parts parts);

  /// Whether one is to be written after so many steps of a run of `total`.
  bool due(std::int64_t steps, std::int64_t total) const;

  /// Whether it is there. Collective; the same on all ranks.
  bool save(const RunPosition& position);

  /// Whether the last one that was tried was given up.
  bool failed() const { return failed_; }
  CheckpointFolders& folders() { return folders_; }

 private:
  void give_up(const RunPosition& position, const std::string& why);

  CheckpointConfig config_;
  Parts parts_;
  CheckpointFolders folders_;
  bool failed_ = false;
};

}  // namespace zero
