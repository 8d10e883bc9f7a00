#include "zero/modules/unsharded_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::int64_t horizon = 64;  // number of uses to look ahead

bool among(const std::vector<int>& groups, int group) {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

UnshardedCache::UnshardedCache(UnitGroups& groups)
    : groups_(groups), open_(groups.groups.size(), false), last_use_(groups.groups.size(), 0) {}

void UnshardedCache::begin() {
  if (std::exchange(under_way_, true)) return;
  if (groups_.gathers) groups_.gather_stream.follow_current();  // wait for the optimizer's new weights
  groups_.under_way.push_back(this);
}

// A failure here (device or disk) was already raised elsewhere and is reported there.
void UnshardedCache::end() noexcept {
  if (!std::exchange(under_way_, false)) return;
  std::erase(groups_.under_way, static_cast<WeightUser*>(this));
  try {
    close_all();
  } catch (const std::exception& error) {
    log_error(std::string("weights could not be let go of: ") + error.what());
  }
}

void UnshardedCache::close_all() {
  if (ahead_ >= 0) groups_.groups[std::size_t(std::exchange(ahead_, -1))]->weights().cancel_prefetch();
  for (std::size_t g = 0; g < open_.size(); ++g) close(int(g));
}

void UnshardedCache::drop_pass() {
  end();
  plan_.drop_pass();
}

void UnshardedCache::use(const std::vector<int>& groups, Phase phase, bool planned) {
  begin();
  for (const int group : groups) {
    if (planned) plan_.add(group);
    last_use_[std::size_t(group)] = ++uses_;
  }
  if (!open_all(groups, phase)) {
    // Small groups may occupy buffers that large ones need: reshard all, then unshard the largest first.
    close_all();
    std::vector<int> ordered = groups;
    const auto numel = [&](int group) { return groups_.groups[std::size_t(group)]->layout().numel(); };
    std::stable_sort(ordered.begin(), ordered.end(), [&](int a, int b) { return numel(a) > numel(b); });
    if (!open_all(ordered, phase))
      throw InputError(text("an operation uses weights of ", groups.size(),
                            " groups at once, and there is memory for fewer: raise open_groups, or make one unit of "
                            "what is used together (units)"));
  }
  if (planned && groups_.overlap) look_ahead(groups, phase);
}

// Returns false if there is no buffer for one of them next to the others.
bool UnshardedCache::open_all(const std::vector<int>& groups, Phase phase) {
  for (const int group : groups) {
    if (open_[std::size_t(group)]) continue;
    if (group == ahead_)
      ahead_ = -1;
    else if (comes_and_goes(group) && !make_room(group, groups))
      return false;
    groups_.groups[std::size_t(group)]->weights().unshard(phase);
    open_[std::size_t(group)] = true;
  }
  return true;
}

// Evicts the group whose next use is farthest away (Belady), by the plan; without a plan, the least recently used.
bool UnshardedCache::make_room(int group, const std::vector<int>& kept) {
  WeightBuffer& weights = groups_.groups[std::size_t(group)]->weights();
  while (!weights.has_room()) {
    int farthest = -1;
    const auto distance = [&](int g) { return std::pair(plan_.next_use(g), uses_ - last_use_[std::size_t(g)]); };
    for (int g = 0; g < int(open_.size()); ++g)
      if (open_[std::size_t(g)] && comes_and_goes(g) && !among(kept, g) &&
          (farthest < 0 || distance(g) > distance(farthest)))
        farthest = g;
    if (farthest >= 0) {
      close(farthest);
    } else if (ahead_ >= 0) {
      groups_.groups[std::size_t(std::exchange(ahead_, -1))]->weights().cancel_prefetch();
    } else {
      return false;
    }
  }
  return true;
}

void UnshardedCache::close(int group) {
  if (!open_[std::size_t(group)]) return;
  open_[std::size_t(group)] = false;
  groups_.groups[std::size_t(group)]->weights().reshard();
}

// Evicts a group for the next use only if that use comes before the group's own.
void UnshardedCache::look_ahead(const std::vector<int>& kept, Phase phase) {
  if (ahead_ >= 0) return;
  const int next = plan_.next(horizon, [&](int group) { return comes_and_goes(group) && !open_[std::size_t(group)]; });
  if (next < 0) return;
  std::vector<int> needed = kept;
  for (int g = 0; g < int(open_.size()); ++g)
    if (open_[std::size_t(g)] && plan_.next_use(g) < plan_.next_use(next)) needed.push_back(g);
  if (!make_room(next, needed)) return;
  groups_.groups[std::size_t(next)]->weights().prefetch(phase);
  ahead_ = next;
}

}  // namespace zero
