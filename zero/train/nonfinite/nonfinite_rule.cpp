#include "zero/train/nonfinite/nonfinite_rule.h"

#include <algorithm>

namespace zero {
namespace {

OnNonfinite choice_of(const std::string& name) {
  return name == "skip" ? OnNonfinite::skip : name == "rollback" ? OnNonfinite::rollback : OnNonfinite::stop;
}

}  // namespace

NonfiniteRule::NonfiniteRule(const TrainingConfig& config)
    : choice_(choice_of(config.on_nonfinite)),
      max_skipped_(config.max_skipped_steps),
      max_rollbacks_(config.max_rollbacks) {}

PassedSteps NonfiniteRule::state(std::int64_t steps) const {
  PassedSteps state = passed_;
  if (steps >= state.failed_at) state.rollbacks = state.failed_at = 0;
  return state;
}

bool NonfiniteRule::skip(std::int64_t step) {
  if (passed_.in_a_row >= max_skipped_) return false;
  ++passed_.in_a_row;
  pass_over(step);
  return true;
}

bool NonfiniteRule::go_back() {
  if (passed_.rollbacks >= max_rollbacks_) return false;
  ++passed_.rollbacks;
  return true;
}

bool NonfiniteRule::blame(const NonfiniteStep& failed, std::int64_t checkpoint) {
  const bool update_is_undone = failed.last_taken > checkpoint;
  if (!failed.states_are_finite && !update_is_undone) return false;
  const bool again = passes_over(failed.step - 1);
  if (failed.states_are_finite) pass_over(failed.step);
  if (update_is_undone && (again || !failed.states_are_finite)) pass_over(failed.last_taken);
  passed_.failed_at = std::max(passed_.failed_at, failed.step);
  return true;
}

void NonfiniteRule::saved(std::int64_t steps) {
  if (steps >= passed_.failed_at) passed_.rollbacks = passed_.failed_at = 0;
}

bool NonfiniteRule::passes_over(std::int64_t step) const {
  return std::binary_search(passed_.steps.begin(), passed_.steps.end(), step);
}

std::int64_t NonfiniteRule::count_until(std::int64_t step) const {
  return std::upper_bound(passed_.steps.begin(), passed_.steps.end(), step) - passed_.steps.begin();
}

void NonfiniteRule::pass_over(std::int64_t step) {
  if (!passes_over(step))
    passed_.steps.insert(std::upper_bound(passed_.steps.begin(), passed_.steps.end(), step), step);
}

}  // namespace zero
