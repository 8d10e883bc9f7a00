#pragma once
// MemoryTracker: live and peak bytes of one rank, by category, as the CPU allocator hands them out.
#include <array>
#include <atomic>
#include <cstdint>

namespace zero {

enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, buffers, activations, other };
inline constexpr int memory_categories = 6;
const char* name_of(MemoryCategory category);

/// Counts may be changed from any thread; a reading is exact when no other thread allocates meanwhile.
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

/// While it lives, allocations of this thread are booked in the tracker: one per rank, also where ranks are threads.
/// A block is booked out of the tracker it was booked into, whichever thread frees it: a tracker outlives its blocks.
class TrackerScope {
 public:
  explicit TrackerScope(MemoryTracker& tracker);
  ~TrackerScope();
  TrackerScope(const TrackerScope&) = delete;
  TrackerScope& operator=(const TrackerScope&) = delete;

 private:
  MemoryTracker* before_;
};

/// What the scopes of this thread say: `other` and nullptr (booked nowhere) where there is none.
MemoryCategory current_category();
MemoryTracker* current_tracker();

}  // namespace zero
