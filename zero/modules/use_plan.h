#pragma once
// UsePlan: the groups that a pass uses, in order, as the pass before showed. A program that does the same in every step
// is thereby known one step later.
#include <cstdint>
#include <vector>

namespace zero {

class UsePlan {
 public:
  /// One more use. Follows the plan while uses are those of the last pass.
  void add(int group);
  /// The pass is over: its uses are the plan of the next.
  void end_pass();
  /// The pass is over, and of no use as a plan.
  void drop_pass();

  /// Whether the pass has been what the last one was up to here, and there was one.
  bool followed() const { return followed_; }
  /// Uses from here until the group's next one; `never` where the plan has none.
  static constexpr std::int64_t never = INT64_MAX;
  std::int64_t next_use(int group) const;
  /// The group of the next use for which `wanted` holds, but none behind the first `most` uses; -1: none.
  template <typename Wanted>
  int next(std::int64_t most, Wanted&& wanted) const {
    for (std::size_t i = at_; followed_ && i < plan_.size() && i < at_ + std::size_t(most); ++i)
      if (wanted(plan_[i])) return plan_[i];
    return -1;
  }
  /// Passes whose uses were not those of the pass before.
  std::int64_t changes() const { return changes_; }
  /// Uses of the last whole pass.
  const std::vector<int>& uses() const { return plan_; }

 private:
  std::vector<int> plan_, pass_;
  std::size_t at_ = 0;  // of the next use
  bool followed_ = false;
  std::int64_t changes_ = 0;
};

}  // namespace zero
