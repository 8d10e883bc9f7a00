#pragma once
// PipelineSchedule: the order in which each stage of a pipeline passes its micro-batches, as data. It is made and
// checked before anything runs.
#include <cstdint>
#include <vector>

#include "zero/core/group_plan.h"

namespace zero {

enum class ScheduleKind : std::uint8_t {
  gpipe,        // all forwards, then all backwards (Huang et al. 2019); the last run takes its backward at once
  one_f_one_b,  // a backward as soon as there is one, and few micro-batches alive (PipeDream-flush, Narayanan et al.
                // 2021)
  interleaved,  // the same with several runs on each stage (Megatron-LM, Narayanan et al. 2021)
};

/// A run of units passes a micro-batch, forward or back.
struct PipelineAction {
  bool backward = false;
  int run = 0;
  int micro_batch = 0;

  bool operator==(const PipelineAction&) const = default;
};

struct PipelineSchedule {
  std::vector<std::vector<PipelineAction>> stages;  // in their order
};

/// Work of the runs in a forward pass, in any unit. A backward pass takes twice as long.
using RunCosts = std::vector<double>;

/// Micro-batches with which all stages are as full as they get. The schedule of a longer step keeps as many alive.
inline int pipeline_fill(int stages, int chunks) { return 2 * stages * (1 + chunks); }

/// The schedule of a step. `runs` lie on stages 0, 1, ... in turn; with tied ends one more lies on stage 0. The
/// interleaved order takes multiples of the stages; other numbers of micro-batches get the 1F1B order. Throws
/// InputError if the kind does not take the runs.
PipelineSchedule make_schedule(ScheduleKind kind, const std::vector<UnitRun>& runs, const RunCosts& costs, int stages,
                               int micro_batches);

/// A schedule in time, if messages take none.
struct PipelineTimeline {
  double end = 0;              // of the last action
  std::vector<double> busy;    // by stage
  std::vector<int> most_live;  // by stage: micro-batches whose forward has run there and whose backward has not; each
                               // run counts

  /// The share of the step in which the busiest stage waits, by what it works: (S - 1) / M for GPipe and 1F1B with S
  /// equal stages and M micro-batches, (S - 1) / (c M) with c chunks.
  double bubble() const;
};

/// Runs through the schedule. Throws Error, with the place, unless every run passes every micro-batch once in each
/// direction, backwards in the order of micro-batches and after their forwards, and no stage waits for ever.
PipelineTimeline timeline_of(const PipelineSchedule& schedule, const std::vector<UnitRun>& runs, const RunCosts& costs,
                             int micro_batches);

}  // namespace zero
