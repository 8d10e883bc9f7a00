#pragma once
// StepObserver: the interface between the step loop and everything that accompanies it. Records, checkpoints,
// validation, stops and skipped steps are observers (observers/).
#include <cstdint>

#include "zero/train/step.h"
#include "zero/train/step_requests.h"

namespace zero {

/// The loop's next action after an observer at a boundary. `moved`: the run stands at another step now, and the loop
/// leaves the boundary at once.
enum class Then : std::uint8_t { go_on, moved, stop };

/// The loop calls the hooks of all observers in the order of their list (training.cpp), on all ranks. An output of a
/// run overrides the hooks that it needs, usually step_finished() alone. Every hook except ask() and add_to() may be
/// collective if all ranks do the same in it.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  /// The states are those of `position`, from a checkpoint of an earlier start of the program. Comes before
  /// run_begins().
  virtual void resumed(const RunPosition& position) {}
  /// The loop begins.
  virtual void run_begins() {}

  /// A step is about to begin. The observer may change its plan.
  virtual void before_step(Step& step) {}
  /// The gradients of all micro-batches are summed, and the update has not begun.
  virtual void gradients_ready(const Step& step) {}
  /// The result is known, of an update or of a step that was passed over. On a GPU the next step may be under way.
  virtual void result_read(Step& step) {}
  /// The ranks are about to exchange requests: adds this rank's. Neither collective nor slow.
  virtual void ask(StepRequests& mine, Pause pause) {}
  /// All figures are known except the loss of a validation that follows. Not called if the run goes back.
  virtual void figures_known(Step& step) {}
  /// All figures of the step are known. Called once for each step that counts, in their order.
  virtual void step_finished(const Step& step) {}

  /// The run stands between two steps. On a GPU results of steps may be unread (StepLoop::read_all()).
  virtual Then at_boundary() { return Then::go_on; }
  /// The states are those of an earlier checkpoint of this run again. Everything later does not count.
  virtual void went_back(const RunPosition& position) {}
  /// The last step is done, and the run does not go back.
  virtual void run_ends() {}

  /// Adds what a checkpoint of `position` must hold for this observer. Not collective.
  virtual void add_to(RunPosition& position) const {}
};

}  // namespace zero
