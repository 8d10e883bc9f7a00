#pragma once
// NonfiniteRule: decides which steps of a run are skipped because their loss or gradients were not finite
// (training.on_nonfinite), and when there are too many. Every rank has one and reports the same results to it, so all
// ranks decide alike. Steps count from 1.
#include <cstdint>

#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"

namespace zero {

enum class OnNonfinite : std::uint8_t { stop, skip, rollback };

/// A step that failed.
struct NonfiniteStep {
  std::int64_t step = 0;
  bool states_are_finite = true;  // the current states, after the last step that was taken
  std::int64_t last_taken = 0;
};

class NonfiniteRule {
 public:
  explicit NonfiniteRule(const TrainingConfig& config);

  OnNonfinite choice() const { return choice_; }
  /// Continues from the state in a checkpoint that an earlier start of the program wrote.
  void resume(const PassedSteps& passed) { passed_ = passed; }
  /// Returns the state for a checkpoint of that step.
  PassedSteps state(std::int64_t steps) const;

  void took() { passed_.in_a_row = 0; }
  /// For "skip": records one more skipped step. Returns false if the run had already skipped as many consecutive steps
  /// as allowed.
  bool skip(std::int64_t step);

  /// For "rollback": records one more rollback. Returns false if the run has already gone back as often as allowed.
  bool go_back();
  /// Finds the steps that caused the failure. They are skipped from now on.
  ///
  /// - If the states are finite: the step itself. If the step before it was skipped too, both failures probably have
  ///   one cause, the last step that was taken. That step is then skipped as well.
  /// - If the states are not finite: only the last step that was taken.
  ///
  /// Returns false if only that last step is to blame and it is part of the checkpoint of step `checkpoint`.
  bool blame(const NonfiniteStep& failed, std::int64_t checkpoint);
  /// Records that a checkpoint of that step was written.
  void saved(std::int64_t steps);

  bool passes_over(std::int64_t step) const;
  /// Returns true if the states must be checked after the step. That is so for steps that are repeated after a
  /// rollback, since the cause may be earlier than the step that was blamed.
  bool watches(std::int64_t step) const { return choice_ == OnNonfinite::rollback && step <= passed_.failed_at; }
  /// Returns the number of steps up to `step` that are skipped.
  std::int64_t count_until(std::int64_t step) const;
  std::int64_t in_a_row() const { return passed_.in_a_row; }

 private:
  void pass_over(std::int64_t step);

  OnNonfinite choice_;
  std::int64_t max_skipped_, max_rollbacks_;
  PassedSteps passed_;
};

}  // namespace zero
