#include "base/activity_clock.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace zero {
namespace {

constexpr std::int64_t large = 1 << 20;  // bytes of a transfer whose rate tells something about the link

thread_local ActivityClock* thread_clock = nullptr;

}  // namespace

const char* name_of(Activity activity) {
  static constexpr const char* names[activities] = {"products", "attention", "kernels", "gathers", "sums",
                                                    "disk",     "data",      "ranks",   "other"};
  return names[static_cast<std::size_t>(activity)];
}

std::int64_t monotonic_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double ActivityTimes::seconds() const {
  return double(std::accumulate(nanoseconds.begin(), nanoseconds.end(), std::int64_t{0})) / 1e9;
}

void ActivityClock::begin(std::size_t slices) {
  times_ = {};
  slices_.clear();
  slices_.reserve(slices);
  room_ = slices;
  left_out_ = 0;
  doing_ = {};
  since_ = now_();
}

void ActivityClock::end() {
  turn_to({});
  room_ = 0;
}

void ActivityClock::turn_to(const Doing& doing) {
  const std::int64_t now = now_();
  times_.nanoseconds[std::size_t(doing_.activity)] += now - since_;
  if (slices_.size() < room_)
    slices_.push_back({since_, now, doing_});
  else if (room_ > 0)
    ++left_out_;
  doing_ = doing;
  since_ = now;
}

ActivityClockScope::ActivityClockScope(ActivityClock& clock) : before_(thread_clock) { thread_clock = &clock; }
ActivityClockScope::~ActivityClockScope() { thread_clock = before_; }

ActivityScope::ActivityScope(const Doing& doing) : clock_(thread_clock) {
  if (!clock_) return;
  before_ = clock_->doing_;
  // The clock is read only where something changes.
  if (doing.activity == before_.activity && !doing.what && doing.bytes == 0) {
    clock_ = nullptr;
    return;
  }
  nanoseconds_before_ = clock_->times_.nanoseconds[std::size_t(doing.activity)];
  clock_->times_.bytes[std::size_t(doing.activity)] += doing.bytes;
  clock_->turn_to(doing);
}

ActivityScope::~ActivityScope() {
  if (!clock_) return;
  const Doing done = clock_->doing_;
  clock_->turn_to(before_);
  if (done.bytes < large) return;
  const auto which = std::size_t(done.activity);
  const std::int64_t took = clock_->times_.nanoseconds[which] - nanoseconds_before_;
  double& best = clock_->times_.best_rate[which];
  best = std::max(best, double(done.bytes) / (double(std::max<std::int64_t>(took, 1)) / 1e9));
}

}  // namespace zero
