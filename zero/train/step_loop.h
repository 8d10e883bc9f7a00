#pragma once
// StepLoop: the loop over the steps of training. It determines the order of everything that follows a step. All other
// parts of a run observe the steps.
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zero/config/config.h"
#include "zero/optim/schedule.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/step_observer.h"
#include "zero/train/training_batches.h"

namespace zero {

/// How a run ended.
enum class RunEnd : std::uint8_t { finished, stopped };

/// The reason why the run must go back to a checkpoint.
struct StepFailure {
  NonfiniteStep at;
  std::string why;  // without a full stop
};

/// The last step whose metrics are known.
struct LastStep {
  double loss = 0;      // of the last step that was not skipped
  bool passed = false;  // true if the last step was skipped
};

class StepLoop {
 public:
  /// `steps` is the length of the run. The other arguments must outlive the loop.
  StepLoop(const Config& config, std::int64_t steps, Engine& engine, TrainingBatches& batches);

  /// Adds an observer after the earlier ones. It must outlive the loop.
  void observe(StepObserver& observer) { observers_.push_back(&observer); }

  /// Continues a run whose states are in the engine. Call it before run().
  void resume(const RunPosition& position);

  /// Trains until the last step, or until an observer stops the run. Throws Error if an observer gives up. On a GPU a
  /// step's result is read while the next step is in progress, unless the step's plan requests it at once. Collective.
  RunEnd run();

  /// Returns the current position of the run: the steps that were begun, and the values that observers add for a
  /// checkpoint.
  RunPosition position() const;
  /// The position after the last step that was taken.
  RunPosition& taken() { return taken_; }
  LastStep& last() { return last_; }
  std::int64_t steps() const { return steps_; }
  std::int64_t steps_done() const { return steps_done_; }
  bool is_at_end() const { return steps_done_ >= steps_; }
  /// Makes the last step that was begun the run's last one.
  void end_here() { steps_ = steps_done_; }
  /// Seconds since step 1 began, without interruptions of the run.
  double seconds() const;

  /// Requests of all ranks that have not been served yet. The code that serves a request clears it.
  StepRequests& asked() { return asked_; }
  /// Returns true if the run ends here, on request or before its time limit.
  bool stops() const { return (asked_.stop || asked_.end) && (steps_done_ < steps_ || held_); }
  /// Gathers the requests of all ranks, and sums their losses and metrics. The arguments are this rank's parts.
  /// Collective.
  StepRequests gather(std::vector<double> losses, Pause pause, std::vector<double> figures = {});

  /// The last step if its metrics wait for a validation; none if no step waits.
  const std::optional<Step>& held() const { return held_; }
  /// Adds the continuations of prompts to that step, which must wait.
  void add_samples(std::vector<Sample> samples) { held_->samples = std::move(samples); }
  /// Ends that wait. No loss means that the validation was skipped. `figures`: the validation's other metrics.
  void release(std::optional<double> validation_loss, const std::vector<std::pair<std::string, double>>& figures = {});

  /// Reads the results of all steps in progress, up to a failure. Collective.
  void read_all();
  /// True if another step is in progress after the one whose result was read last. The gradients are then those of the
  /// later step.
  bool runs_ahead() const { return !issued_.empty(); }
  /// Drops the steps in progress. Steps that were taken still count in taken(), but observers add nothing to it.
  /// Returns true if a step was taken. Collective.
  bool drain();

  /// Records that the run must go back because of step `step` (from 0).
  void fail(std::int64_t step, bool states_are_finite, std::string why);
  bool failed() const { return failed_.has_value(); }
  StepFailure take_failure();
  /// Continues at a checkpoint whose states are in the engine.
  void go_back_to(const RunPosition& position);

 private:
  /// A step whose result has not been read.
  struct Issued {
    Step step;
    PendingStepResult pending;
  };
  void take_step();
  void pass_over(Step step);
  void train(Step step);
  void count(Step& step);
  void read_oldest();
  void finish(Step step);
  void stamp(StepMetrics& metrics) const;
  void tell(const Step& step);
  Then boundary();
  void stand_at(const RunPosition& position);
  /// True on one of the ranks with the same tokens, so that tokens are counted once.
  bool counts_tokens() const { return engine_.mesh().index(axes::tokens.others()) == 0; }

  const Config& config_;
  std::int64_t steps_;
  Engine& engine_;
  TrainingBatches& batches_;
  ScheduleOptions schedule_;
  std::vector<StepObserver*> observers_;

  std::chrono::steady_clock::time_point begin_;  // start of step 1, shifted by interruptions of the run
  double former_seconds_ = 0;                    // seconds of earlier starts of the program
  std::int64_t steps_done_ = 0, tokens_ = 0, trained_tokens_ = 0;
  RunPosition taken_;
  LastStep last_;
  StepRequests asked_;
  std::deque<Issued> issued_;
  std::optional<Step> held_;
  std::optional<StepFailure> failed_;
};

}  // namespace zero
