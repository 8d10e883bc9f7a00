#include "base/memory_tracker.h"

#include <cstddef>

namespace zero {
namespace {

thread_local MemoryCategory thread_category = MemoryCategory::other;
thread_local MemoryTracker* thread_tracker = nullptr;

void raise_to(std::atomic<std::int64_t>& peak, std::int64_t value) {
  std::int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

const char* name_of(MemoryCategory category) {
  static constexpr const char* names[memory_categories] = {"parameters", "gradients",   "optimizer",
                                                           "buffers",    "activations", "other"};
  return names[static_cast<std::size_t>(category)];
}

MemoryCategory current_category() { return thread_category; }
MemoryTracker* current_tracker() { return thread_tracker; }

void MemoryTracker::add(MemoryCategory category, std::int64_t bytes) {
  for (Count* count : {&categories_[static_cast<std::size_t>(category)], &total_}) {
    const std::int64_t now = count->live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (bytes > 0) raise_to(count->peak, now);
  }
}

std::int64_t MemoryTracker::live(MemoryCategory category) const {
  return categories_[static_cast<std::size_t>(category)].live;
}
std::int64_t MemoryTracker::peak(MemoryCategory category) const {
  return categories_[static_cast<std::size_t>(category)].peak;
}
std::int64_t MemoryTracker::live() const { return total_.live; }
std::int64_t MemoryTracker::peak() const { return total_.peak; }

void MemoryTracker::reset_peak() {
  for (Count& count : categories_) count.peak = count.live.load();
  total_.peak = total_.live.load();
}

CategoryScope::CategoryScope(MemoryCategory category) : before_(thread_category) { thread_category = category; }
CategoryScope::~CategoryScope() { thread_category = before_; }

TrackerScope::TrackerScope(MemoryTracker& tracker) : before_(thread_tracker) { thread_tracker = &tracker; }
TrackerScope::~TrackerScope() { thread_tracker = before_; }

}  // namespace zero
