#pragma once
// StepParts: measures how each rank spends the time of a step. It adds figures to metrics.jsonl and writes the trace of
// some steps. At the end it names the activity that limits the run.
#include <optional>

#include "base/activity_clock.h"
#include "zero/train/records/step_trace.h"
#include "zero/train/step_loop.h"

namespace zero {

/// The first of all observers, so that the work of the others belongs to the step. A step ends when its figures are
/// known: checkpoints and validations between steps do not count. Does nothing on GPUs, where the host's time says
/// little.
class StepParts final : public StepObserver {
 public:
  /// All of these must outlive the observer.
  StepParts(const Config& config, const StepLoop& loop, Engine& engine, std::int64_t micro_batches);
  ~StepParts() override;

  void before_step(Step& step) override;
  void figures_known(Step& step) override;
  void run_ends() override;

 private:
  /// Sums of this start of the program, without its first step.
  struct Sums {
    ActivityTimes times;
    std::int64_t steps = 0;
    void add(const ActivityTimes& of_a_step);
  };
  bool is_logged(const Step& step) const { return step.is_logged(config_.metrics.log_interval, loop_.steps()); }
  void tell(StepMetrics& metrics);
  void trace(std::int64_t step);

  const Config& config_;
  const StepLoop& loop_;
  Engine& engine_;
  std::int64_t micro_batches_;
  bool measures_;
  ActivityClock clock_;
  std::optional<ActivityClockScope> running_;
  bool is_first_ = true;  // the first step also sets up memory
  Sums sums_;
  std::optional<StepTrace> trace_;
};

}  // namespace zero
