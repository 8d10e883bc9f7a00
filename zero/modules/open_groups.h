#pragma once
// OpenGroups: the weights of groups that somebody else's program uses, in whatever order. They come when an operation
// uses them and stay until the buffer is needed; which ones go then, and which are brought ahead, is what the uses of the
// pass before tell (UsePlan).
#include <string>
#include <vector>

#include "zero/core/unit_groups.h"
#include "zero/modules/use_plan.h"

namespace zero {

class OpenGroups final : private WeightUser {
 public:
  /// The groups' units are in any order. They outlive this.
  explicit OpenGroups(UnitGroups& groups);
  ~OpenGroups() override { end(); }
  OpenGroups(const OpenGroups&) = delete;
  OpenGroups& operator=(const OpenGroups&) = delete;

  /// The weights of all these are there when it returns. `planned`: the use is one that comes again in the next pass.
  /// Throws InputError where an operation uses groups of more units at once than there are buffers for. Collective.
  void use(const std::vector<int>& groups, Phase phase, bool planned);
  /// A forward with its backward is over: what was used is the plan of the next one.
  void end_pass() { plan_.end_pass(); }
  /// It failed: everything is let go of, and its uses are no plan.
  void drop_pass();
  const UsePlan& plan() const { return plan_; }

  /// Lets go of all.
  void end() noexcept override;
  bool is_open(int group) const { return open_.at(std::size_t(group)); }

 private:
  void pause() override { end(); }
  bool comes_and_goes(int group) const { return groups_.groups[std::size_t(group)]->weights().comes_and_goes(); }
  bool open_all(const std::vector<int>& groups, Phase phase);
  void close_all();
  bool make_room(int group, const std::vector<int>& kept);
  void close(int group);
  void look_ahead(const std::vector<int>& kept, Phase phase);
  void begin();

  UnitGroups& groups_;
  UsePlan plan_;
  std::vector<bool> open_;               // by group
  std::vector<std::uint64_t> last_use_;  // by group
  std::uint64_t uses_ = 0;
  int ahead_ = -1;  // the group that is on its way
  bool under_way_ = false;
};

}  // namespace zero
