#include "zero/modules/access_trace.h"

#include <algorithm>
#include <utility>

namespace zero {

namespace {

constexpr std::size_t longest = 1 << 16;  // maximum number of recorded uses, since a program may run forward forever

}  // namespace

// Consecutive operations on the same group count as one use.
void AccessTrace::add(int group) {
  if (!pass_.empty() && pass_.back() == group) return;
  if (pass_.size() < longest) pass_.push_back(group);
  if (!followed_) return;
  if (at_ < plan_.size() && plan_[at_] == group)
    ++at_;
  else
    followed_ = false;
}

void AccessTrace::end_pass() {
  if (!plan_.empty() && pass_ != plan_) ++changes_;
  plan_ = std::exchange(pass_, {});
  at_ = 0;
  followed_ = !plan_.empty();
}

void AccessTrace::drop_pass() {
  pass_.clear();
  at_ = 0;
  followed_ = !plan_.empty();
}

std::int64_t AccessTrace::next_use(int group) const {
  if (!followed_) return never;
  const auto from = plan_.begin() + std::ptrdiff_t(at_);
  const auto found = std::find(from, plan_.end(), group);
  return found == plan_.end() ? never : found - from;
}

}  // namespace zero
