#pragma once
// PipelineSchedule: the order in which each pipeline stage processes its micro-batches, as data. It is made and checked
// before anything runs.
#include <cstdint>
#include <vector>

#include "zero/core/group_plan.h"

namespace zero {

enum class ScheduleKind : std::uint8_t {
  gpipe,        // all forwards, then all backwards (Huang et al. 2019); in the last run each forward, then its backward
  one_f_one_b,  // backwards as early as possible, few live micro-batches (PipeDream-flush, Narayanan et al. 2021)
  interleaved,  // the same with several runs on each stage (Megatron-LM, Narayanan et al. 2021)
};

/// A run of units processes a micro-batch, forward or backward.
struct PipelineAction {
  bool backward = false;
  int run = 0;
  int micro_batch = 0;

  bool operator==(const PipelineAction&) const = default;
};

struct PipelineSchedule {
  std::vector<std::vector<PipelineAction>> stages;  // each stage's actions, in order
};

/// Work of the runs in a forward pass, in any unit. A backward pass takes twice as long.
using RunCosts = std::vector<double>;

/// The number of micro-batches at which all stages are about as full as they can be. A longer step keeps at most one
/// more alive.
inline int pipeline_fill(int stages, int chunks) { return 2 * stages * (1 + chunks); }

/// The schedule of a step. `runs` lie on stages 0, 1, ... in turn; with tied ends one more lies on stage 0. The
/// interleaved order takes multiples of the stages; other numbers of micro-batches get the 1F1B order. Throws
/// InputError if the kind does not support the runs.
PipelineSchedule make_schedule(ScheduleKind kind, const std::vector<UnitRun>& runs, const RunCosts& costs, int stages,
                               int micro_batches);

/// The timing of a schedule, assuming that messages take no time.
struct PipelineTimeline {
  double end = 0;              // of the last action
  std::vector<double> busy;    // by stage
  std::vector<int> most_live;  // by stage: peak number of forwards without their backward, counted for each run

  /// The busiest stage's waiting time, divided by its working time. For GPipe and 1F1B with S equal stages and M
  /// micro-batches this is (S - 1) / M, with c chunks (S - 1) / (c M).
  double bubble() const;
};

/// Simulates the schedule. Every run must process every micro-batch once in each direction. Backwards must run in the
/// order of micro-batches, each after its forward, and no stage may wait forever. Otherwise throws Error that names the
/// place.
PipelineTimeline timeline_of(const PipelineSchedule& schedule, const std::vector<UnitRun>& runs, const RunCosts& costs,
                             int micro_batches);

}  // namespace zero
