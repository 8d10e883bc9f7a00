#pragma once
// StepRequests: the requests and figures that ranks exchange after a step or a part of a validation. One small gather
// carries all of it.
#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "zero/checkpoint/save_checkpoint.h"

namespace zero {

/// The part of a run that has ended when ranks exchange requests. A validation follows `step_before_validation` at
/// once.
enum class Pause : std::uint8_t { step, step_before_validation, part_of_validation, validation };

/// The requests of one rank; from gathered(), those of all.
struct StepRequests {
  bool stop = false;                            // a signal asks to stop; of all: on any rank
  bool save = false;                            // the clock asks for a checkpoint; of all: rank 0's clock
  bool end = false;                             // the time limit is near; of all: by rank 0's clock
  SaveProgress progress = SaveProgress::ended;  // of a checkpoint under way; of all: failed or not ended anywhere
  std::chrono::duration<double> save_time{};    // spent on that checkpoint; of all: by the slowest rank
  std::int64_t peak_bytes = 0;                  // peak of tensors; of all: on the fullest rank
  std::vector<double> losses = {};              // parts of a loss, equally many on every rank; of all: their one sum
  std::vector<double> figures = {};             // of the loss, equally many on every rank; of all: the sum of each

  /// Adds later requests. A request stays until somebody serves and clears it. Progress is replaced.
  void add(const StepRequests& heard);
};

/// Gathers the requests of all ranks. Losses are added in the order of (part, rank). Collective; the same on all ranks.
StepRequests gathered(Communicator& ranks, const StepRequests& mine, CallTag tag);

}  // namespace zero
