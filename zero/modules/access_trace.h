#pragma once
// AccessTrace: predicts the groups a pass uses, in order, from the previous pass. A program that repeats its steps is
// known after the first.
#include <cstdint>
#include <vector>

namespace zero {

class AccessTrace {
 public:
  /// Records a use. Follows the plan while the uses match the last pass.
  void add(int group);
  /// Ends the pass: its uses become the plan of the next.
  void end_pass();
  /// Ends the pass without making it a plan.
  void drop_pass();

  /// True if there was a last pass and this one has matched it so far.
  bool followed() const { return followed_; }
  /// Uses from here to the group's next one; `never` if the plan has none.
  static constexpr std::int64_t never = INT64_MAX;
  std::int64_t next_use(int group) const;
  /// The group of the next use for which `wanted` is true, among the next `most` uses; -1 if none.
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
