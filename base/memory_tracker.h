#pragma once
// MemoryTracker: live and peak bytes of one rank, by category, as counted by the CPU allocator.
#include <array>
#include <atomic>
#include <cstdint>

namespace zero {

enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, buffers, activations, other };
inline constexpr int memory_categories = 6;
const char* name_of(MemoryCategory category);

/// Any thread may change the counts. A value read is exact only if no other thread allocates meanwhile.
class MemoryTracker {
 public:
  void add(MemoryCategory category, std::int64_t bytes);  // negative on release
  std::int64_t live(MemoryCategory category) const;
  std::int64_t peak(MemoryCategory category) const;  // of this category alone
  std::int64_t live() const;                         // sum over categories
  std::int64_t peak() const;                         // of that sum
  void reset_peak();                                 // peak = live

 private:
  struct Count {
    std::atomic<std::int64_t> live{0};
    std::atomic<std::int64_t> peak{0};
  };
  std::array<Count, memory_categories> categories_;
  Count total_;
};

/// While this object lives, allocations of this thread are counted under the category. Scopes nest.
class CategoryScope {
 public:
  explicit CategoryScope(MemoryCategory category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  MemoryCategory before_;
};

/// While this object lives, the tracker counts allocations of this thread. Each rank has a tracker, even if ranks are
/// threads. When a block is freed, by any thread, the tracker that counted its allocation is updated. A tracker must
/// outlive its blocks.
class TrackerScope {
 public:
  explicit TrackerScope(MemoryTracker& tracker);
  ~TrackerScope();
  TrackerScope(const TrackerScope&) = delete;
  TrackerScope& operator=(const TrackerScope&) = delete;

 private:
  MemoryTracker* before_;
};

/// The category and tracker of this thread's innermost scopes. Without a scope they are `other` and nullptr (not
/// counted).
MemoryCategory current_category();
MemoryTracker* current_tracker();

}  // namespace zero
