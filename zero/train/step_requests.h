#pragma once
// StepRequests: the requests and metrics that ranks exchange after a step or a part of a validation, in one small
// gather.
#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "zero/checkpoint/save_checkpoint.h"

namespace zero {

/// The part of a run that has ended when ranks exchange requests. After `step_before_validation` a validation follows
/// at once.
enum class Pause : std::uint8_t { step, step_before_validation, part_of_validation, validation };

/// The requests of one rank. In the result of gathered(), the requests of all ranks.
struct StepRequests {
  bool stop = false;                            // a signal requests a stop; all ranks: on any rank
  bool save = false;                            // the clock requests a checkpoint; all ranks: rank 0's clock
  bool end = false;                             // the time limit is near; all ranks: by rank 0's clock
  SaveProgress progress = SaveProgress::ended;  // of a checkpoint in progress; all ranks: the worst of any rank
  std::chrono::duration<double> save_time{};    // spent on that checkpoint; all ranks: by the slowest rank
  std::int64_t peak_bytes = 0;                  // peak of tensors; all ranks: the largest
  std::vector<double> losses = {};              // parts of a loss, equally many on every rank; all ranks: their total
  std::vector<double> figures = {};             // metrics, equally many on every rank; all ranks: the sum of each

  /// Adds later requests. A request stays until it is served and cleared. Progress is replaced.
  void add(const StepRequests& heard);
};

/// Gathers the requests of all ranks. Losses are added in the order of (part, rank). The result is the same on all
/// ranks. Collective.
StepRequests gathered(Communicator& ranks, const StepRequests& mine, CallTag tag);

}  // namespace zero
