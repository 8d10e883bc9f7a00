#pragma once
// AccessTrace: predicts the groups that a pass uses, in order, from the previous pass. If a program repeats its steps,
// predictions are right after the first step.
#include <cstdint>
#include <vector>

namespace zero {

class AccessTrace {
 public:
  /// Records a use. Follows the plan while the uses match the last pass.
  void add(int group);
  /// Ends the pass: its uses become the plan of the next pass.
  void end_pass();
  /// Ends the pass without making it the plan.
  void drop_pass();

  /// True if there was a previous pass and this pass has matched it so far.
  bool followed() const { return followed_; }
  /// Number of uses from here to the group's next use; `never` if the plan has none.
  static constexpr std::int64_t never = INT64_MAX;
  std::int64_t next_use(int group) const;
  /// Returns the first group among the next `most` uses for which `wanted` is true; -1 if there is none.
  template <typename Wanted>
  int next(std::int64_t most, Wanted&& wanted) const {
    for (std::size_t i = at_; followed_ && i < plan_.size() && i < at_ + std::size_t(most); ++i)
      if (wanted(plan_[i])) return plan_[i];
    return -1;
  }
  /// Number of passes that differed from the one before.
  std::int64_t changes() const { return changes_; }
  /// Uses of the last complete pass.
  const std::vector<int>& uses() const { return plan_; }

 private:
  std::vector<int> plan_, pass_;
  std::size_t at_ = 0;  // index of the next use
  bool followed_ = false;
  std::int64_t changes_ = 0;
};

}  // namespace zero
