#pragma once
// StepRequests: what ranks ask for and tell each other where a step, or a part of a validation, has ended. One small
// gather carries all of it.
#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "zero/checkpoint/save_checkpoint.h"

namespace zero {

/// The part of a run that has ended where the ranks tell each other. A validation follows `step_before_validation` at once.
enum class Pause : std::uint8_t { step, step_before_validation, part_of_validation, validation };

/// The requests of one rank; or, from gathered(), those of all.
struct StepRequests {
  bool stop = false;                            // a signal asks to stop; of all: it has reached some rank
  bool save = false;                            // the clock asks for a checkpoint; of all: rank 0's does
  bool end = false;                             // the time limit is near; of all: by rank 0's clock
  SaveProgress progress = SaveProgress::ended;  // of a checkpoint under way; of all: failed, or not ended, anywhere
  std::chrono::duration<double> save_time{};    // spent on it; of all: by the slowest rank
  std::int64_t peak_bytes = 0;                  // the most that tensors have taken; of all: on the fullest rank
  std::vector<double> losses = {};              // parts of a loss, as many on every rank; of all: their one sum
  std::vector<double> figures = {};             // of the loss, as many on every rank; of all: the sum of each

  /// Adds what was heard later: requests stay until somebody serves and clears them. Progress is the newest.
  void add(const StepRequests& heard);
};

/// Gathers the requests of all ranks. Losses are added in the order of (part, rank). Collective; the same on all ranks.
StepRequests gathered(Communicator& ranks, const StepRequests& mine, CallTag tag);

}  // namespace zero
