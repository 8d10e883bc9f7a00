#pragma once
// NonfiniteRule: decides which steps of a run are passed over because their loss or gradients were not finite
// (training.on_nonfinite), and when there are too many. Every rank holds one and reports the same to it, so all decide
// alike. Steps count from 1.
#include <cstdint>

#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"

namespace zero {

enum class OnNonfinite : std::uint8_t { stop, skip, rollback };

/// A step that failed.
struct NonfiniteStep {
  std::int64_t step = 0;
  bool states_are_finite = true;  // now, after the last step that was taken
  std::int64_t last_taken = 0;
};

class NonfiniteRule {
 public:
  explicit NonfiniteRule(const TrainingConfig& config);

  OnNonfinite choice() const { return choice_; }
  /// Continues from the state of a checkpoint that an earlier start of the program wrote.
  void resume(const PassedSteps& passed) { passed_ = passed; }
  /// The state for a checkpoint of that step.
  PassedSteps state(std::int64_t steps) const;

  void took() { passed_.in_a_row = 0; }
  /// skip: notes one more skipped step. Returns false if as many in a row as allowed were skipped before it.
  bool skip(std::int64_t step);

  /// rollback: notes that the run goes back once more. Returns false if it has done so as often as allowed.
  bool go_back();
  /// Finds the steps that caused the failure. They are passed over from now on.
  ///
  /// - States finite: the step itself. If the step before it was passed over too, both failures probably have one
  ///   cause: the last step that was taken. Then that one is passed over as well.
  /// - States not finite: only the last step that was taken.
  ///
  /// Returns false if that last step is to blame alone, but is part of the checkpoint of step `checkpoint`.
  bool blame(const NonfiniteStep& failed, std::int64_t checkpoint);
  /// Notes that a checkpoint of that step was written.
  void saved(std::int64_t steps);

  bool passes_over(std::int64_t step) const;
  /// True if the states are checked after the step. It is such a step if the run went back to before it: the cause may
  /// lie earlier than the step that was blamed.
  bool watches(std::int64_t step) const { return choice_ == OnNonfinite::rollback && step <= passed_.failed_at; }
  /// Number of steps up to `step` that are passed over.
  std::int64_t count_until(std::int64_t step) const;
  std::int64_t in_a_row() const { return passed_.in_a_row; }

 private:
  void pass_over(std::int64_t step);

  OnNonfinite choice_;
  std::int64_t max_skipped_, max_rollbacks_;
  PassedSteps passed_;
};

}  // namespace zero
