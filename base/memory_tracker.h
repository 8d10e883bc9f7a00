#pragma once
// MemoryTracker: live and peak bytes of one rank, by category, as the CPU allocator hands them out.
#include <array>
#include <atomic>
#include <cstdint>

namespace zero {

enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, buffers, activations, other };
inline constexpr int memory_categories = 6;
const char* name_of(MemoryCategory category);

/// Any thread may change counts. A reading is exact if no other thread allocates meanwhile.
class MemoryTracker {
 public:
  void add(MemoryCategory category, std::int64_t bytes);  // negative on release
  std::int64_t live(MemoryCategory category) const;
  std::int64_t peak(MemoryCategory category) const;  // of that category alone
  std::int64_t live() const;                         // sum of all
  std::int64_t peak() const;                         // of the sum
  void reset_peak();                                 // peak = live

 private:
  struct Count {
    std::atomic<std::int64_t> live{0};
    std::atomic<std::int64_t> peak{0};
  };
  std::array<Count, memory_categories> categories_;
  Count total_;
};

/// While it lives, allocations of this thread are booked under the category; scopes nest.
class CategoryScope {
 public:
  explicit CategoryScope(MemoryCategory category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  MemoryCategory before_;
};

/// While it lives, allocations of this thread are booked in the tracker. Each rank has one, also if ranks are threads.
/// A block is released in the tracker that it was booked in, whichever thread frees it. A tracker outlives its blocks.
class TrackerScope {
 public:
  explicit TrackerScope(MemoryTracker& tracker);
  ~TrackerScope();
  TrackerScope(const TrackerScope&) = delete;
  TrackerScope& operator=(const TrackerScope&) = delete;

 private:
  MemoryTracker* before_;
};

/// The innermost scopes of this thread. Without one: `other` and nullptr (booked nowhere).
MemoryCategory current_category();
MemoryTracker* current_tracker();

}  // namespace zero
