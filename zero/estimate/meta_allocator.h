#pragma once
// MetaAllocator: records the allocations of LibTorch's Meta device. Meta tensors have a size but no memory. A
// computation on them takes no time, and shows what it would allocate, in order.
#include <c10/core/Allocator.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory_tracker.h"

namespace zero {

/// All allocations and frees, in order. Sizes are rounded up to 64 bytes, like CpuAllocator's.
class AllocationTrace {
 public:
  /// Returns a number for the block. The block gets the category of this thread's scope.
  int take(std::size_t bytes);
  void give(int block);

  std::int64_t live(MemoryCategory category) const { return live_[int(category)]; }

  struct Block {
    std::int64_t bytes = 0;
    MemoryCategory category = MemoryCategory::other;
  };
  const std::vector<Block>& blocks() const { return blocks_; }

  /// The number of events so far, and the peak bytes of blocks allocated since an event.
  std::size_t moment() const { return events_.size(); }
  std::int64_t peak_since(std::size_t moment) const;

  /// Returns the category's blocks that were alive when their total was largest.
  std::vector<int> alive_at_peak(MemoryCategory category) const;

 private:
  struct Event {
    int block;
    bool taken;
  };
  std::vector<Block> blocks_;
  std::vector<Event> events_;
  std::array<std::int64_t, memory_categories> live_{};
};

/// While it lives, replaces LibTorch's Meta allocator; the destructor restores the previous one. Addresses are distinct
/// and point to no memory. Blocks may outlive the allocator. Not thread-safe.
class MetaAllocator final : public c10::Allocator {
 public:
  MetaAllocator();
  ~MetaAllocator() override;
  MetaAllocator(const MetaAllocator&) = delete;
  MetaAllocator& operator=(const MetaAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void*, const void*, std::size_t) const override {}

  const AllocationTrace& trace() const { return *trace_; }
  /// The number of a storage's block, which this allocator must have made.
  static int block_of(const c10::Storage& storage);

 private:
  std::shared_ptr<AllocationTrace> trace_ = std::make_shared<AllocationTrace>();
  std::uintptr_t next_ = std::uintptr_t{1} << 44;
  c10::Allocator* before_;
};

}  // namespace zero
