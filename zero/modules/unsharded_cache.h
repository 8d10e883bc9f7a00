#pragma once
// UnshardedCache: unshards groups in whatever order a user's program uses them. A group is unsharded on first use and
// stays so until its buffer is needed. The uses of the previous pass (AccessTrace) determine which groups are resharded
// and prefetched.
#include <string>
#include <vector>

#include "zero/core/unit_groups.h"
#include "zero/modules/access_trace.h"

namespace zero {

class UnshardedCache final : private WeightUser {
 public:
  /// The groups' units may be in any order. The groups must outlive the cache.
  explicit UnshardedCache(UnitGroups& groups);
  ~UnshardedCache() override { end(); }
  UnshardedCache(const UnshardedCache&) = delete;
  UnshardedCache& operator=(const UnshardedCache&) = delete;

  /// Unshards all these groups before it returns. `planned`: the next pass will repeat this use. Throws InputError if
  /// an operation uses groups of more units at once than there are buffers. Collective.
  void use(const std::vector<int>& groups, Phase phase, bool planned);
  /// Call it after a forward and its backward. Their uses become the plan of the next pass.
  void end_pass() { plan_.end_pass(); }
  /// Call it if the pass failed. Reshards everything; the pass's uses do not become a plan.
  void drop_pass();
  const AccessTrace& plan() const { return plan_; }

  /// Reshards all groups.
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
  AccessTrace plan_;
  std::vector<bool> open_;               // by group
  std::vector<std::uint64_t> last_use_;  // by group
  std::uint64_t uses_ = 0;
  int ahead_ = -1;  // the group being prefetched
  bool under_way_ = false;
};

}  // namespace zero
