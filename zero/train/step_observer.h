#pragma once
// StepObserver: what accompanies the steps of a run, and all that the loop knows of it. Records, checkpoints, validation,
// stops and skipped steps are observers (observers/).
#include <cstdint>

#include "zero/train/step.h"
#include "zero/train/step_requests.h"

namespace zero {

/// How the loop goes on behind an observer at a boundary. `moved`: the run stands at another step now, and the boundary is
/// left at once.
enum class Then : std::uint8_t { go_on, moved, stop };

/// The loop calls the hooks of all observers in the order of their list (training.cpp), on all ranks. An output of a run
/// overrides those it needs; most need step_finished() alone. Every hook may be collective where all ranks do the same in
/// it, but for ask() and add_to().
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  /// The states are those of `position`, of a checkpoint of a former start of the program. Before run_begins().
  virtual void resumed(const RunPosition& position) {}
  /// The loop begins.
  virtual void run_begins() {}

  /// A step is about to begin: its plan may be changed.
  virtual void before_step(Step& step) {}
  /// The gradients of all micro-batches are summed, and the update has not begun.
  virtual void gradients_ready(const Step& step) {}
  /// The result is there, of an update or of a step that was passed over; on a GPU the next step may be under way.
  virtual void result_read(Step& step) {}
  /// The ranks are about to tell each other: what this rank asks for. Neither collective nor slow.
  virtual void ask(StepRequests& mine, Pause pause) {}
  /// The figures are known but for the loss of a validation that follows. Not called where the run goes back.
  virtual void figures_known(Step& step) {}
  /// All figures of the step are known. Once for each step that counts, in their order.
  virtual void step_finished(const Step& step) {}

  /// The run stands between two steps; results of steps may be unread on a GPU (StepLoop::read_all()).
  virtual Then at_boundary() { return Then::go_on; }
  /// The states are those of an earlier checkpoint of this run again: what came later does not count.
  virtual void went_back(const RunPosition& position) {}
  /// The last step is done, and the run does not go back.
  virtual void run_ends() {}

  /// Adds what a checkpoint of `position` must hold for this observer. Not collective.
  virtual void add_to(RunPosition& position) const {}
};

}  // namespace zero
