#pragma once
// StepObserver: the interface between the step loop and everything that happens around the steps. Records, checkpoints,
// validation, stops and skipped steps are observers (observers/).
#include <cstdint>

#include "zero/train/step.h"
#include "zero/train/step_requests.h"

namespace zero {

/// The loop's next action after an observer at a boundary. `moved`: the run is now at another step, and the loop leaves
/// the boundary at once.
enum class Then : std::uint8_t { go_on, moved, stop };

/// The loop calls the hooks of all observers on all ranks, in the order of the list in training.cpp. A new output of a
/// run overrides the hooks that it needs, usually just step_finished(). Every hook except ask() and add_to() may call
/// collectives if all ranks make the same calls.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  /// The states are those of `position`, from a checkpoint of an earlier start of the program. Called before
  /// run_begins().
  virtual void resumed(const RunPosition& position) {}
  /// The loop begins.
  virtual void run_begins() {}

  /// A step is about to begin. The observer may change its plan.
  virtual void before_step(Step& step) {}
  /// The gradients of all micro-batches are summed, but the update has not begun.
  virtual void gradients_ready(const Step& step) {}
  /// The result of an update or of a skipped step is known. On a GPU the next step may be in progress.
  virtual void result_read(Step& step) {}
  /// The ranks are about to exchange requests. Adds this rank's requests. Must be fast and not collective.
  virtual void ask(StepRequests& mine, Pause pause) {}
  /// All metrics are known except the loss of a validation that follows. Not called if the run goes back.
  virtual void figures_known(Step& step) {}
  /// All metrics of the step are known. Called once for each step that counts, in order.
  virtual void step_finished(const Step& step) {}

  /// The run is between two steps. On a GPU results of steps may be unread (StepLoop::read_all()).
  virtual Then at_boundary() { return Then::go_on; }
  /// The run went back: the states are those of an earlier checkpoint of this run. Everything after that checkpoint
  /// does not count.
  virtual void went_back(const RunPosition& position) {}
  /// The last step is done, and the run does not go back.
  virtual void run_ends() {}

  /// Adds the values that a checkpoint of `position` must hold for this observer. Not collective.
  virtual void add_to(RunPosition& position) const {}
};

}  // namespace zero
