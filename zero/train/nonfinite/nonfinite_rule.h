#pragma once
// NonfiniteRule: which steps of a run are passed over, since their loss or gradients were not finite
// (training.on_nonfinite), and when there have been too many. All ranks hold one and tell it the same, so that all decide
// alike. Steps count from 1.
#include <cstdint>

#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"

namespace zero {

enum class OnNonfinite : std::uint8_t { stop, skip, rollback };

/// A step that failed.
struct NonfiniteStep {
  std::int64_t step = 0;
  bool states_are_finite = true;  // as they are now, after the last step that was taken
  std::int64_t last_taken = 0;
};

class NonfiniteRule {
 public:
  explicit NonfiniteRule(const TrainingConfig& config);

  OnNonfinite choice() const { return choice_; }
  /// The run goes on from a checkpoint that another start of the program wrote.
  void resume(const PassedSteps& passed) { passed_ = passed; }
  /// For a checkpoint after so many steps.
  PassedSteps state(std::int64_t steps) const;

  void took() { passed_.in_a_row = 0; }
  /// skip: one more. False: there were as many in a row as may be.
  bool skip(std::int64_t step);

  /// rollback: the run goes back once more. False: it has done so as often as may be.
  bool go_back();
  /// What caused the failure is passed over from now on. Where the states are finite that is the step itself; if the one
  /// before it was passed over too, the failures are likely to be one, which the last step that was taken has caused, and
  /// that is passed over as well. Where the states are not finite it is that one alone. False: the checkpoint, of so many
  /// steps, was written after it.
  bool blame(const NonfiniteStep& failed, std::int64_t checkpoint);
  /// A checkpoint was written after so many steps.
  void saved(std::int64_t steps);

  bool passes_over(std::int64_t step) const;
  /// True if the states are checked when the step was taken: it is done again after a failure, whose cause may lie before
  /// the step that was blamed.
  bool watches(std::int64_t step) const { return choice_ == OnNonfinite::rollback && step <= passed_.failed_at; }
  /// Those passed over up to a step.
  std::int64_t count_until(std::int64_t step) const;
  std::int64_t in_a_row() const { return passed_.in_a_row; }

 private:
  void pass_over(std::int64_t step);

  OnNonfinite choice_;
  std::int64_t max_skipped_, max_rollbacks_;
  PassedSteps passed_;
};

}  // namespace zero
