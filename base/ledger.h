#pragma once
// Ledger: live and peak bytes of one rank, by category, as the CPU allocator hands them out.
#include <array>
#include <atomic>
#include <cstdint>

namespace zero {

enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, buffers, activations, other };
inline constexpr int memory_categories = 6;
const char* name_of(MemoryCategory category);

/// Counts may be changed from any thread; a reading is exact when no other thread allocates meanwhile.
class Ledger {
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
class MemoryScope {
 public:
  explicit MemoryScope(MemoryCategory category);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryCategory before_;
};

/// While it lives, allocations of this thread are booked in the ledger: one per rank, also where ranks are threads.
/// A block is booked out of the ledger it was booked into, whichever thread frees it: a ledger outlives its blocks.
class LedgerScope {
 public:
  explicit LedgerScope(Ledger& ledger);
  ~LedgerScope();
  LedgerScope(const LedgerScope&) = delete;
  LedgerScope& operator=(const LedgerScope&) = delete;

 private:
  Ledger* before_;
};

/// What the scopes of this thread say: `other` and nullptr (booked nowhere) where there is none.
MemoryCategory current_category();
Ledger* current_ledger();

}  // namespace zero
