#pragma once
// MetaAllocator: what LibTorch's Meta device allocates, written down. A tensor there has a size and no memory, so a
// computation on it runs in no time and shows what it would hold, in order.
#include <c10/core/Allocator.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory_tracker.h"

namespace zero {

/// All that was taken and given back, in order. Sizes are rounded up to 64 bytes, as CpuAllocator's are.
class AllocationTrace {
 public:
  /// A number for the block; the category is that of this thread's scope.
  int take(std::size_t bytes);
  void give(int block);

  std::int64_t live(MemoryCategory category) const { return live_[int(category)]; }

  struct Block {
    std::int64_t bytes = 0;
    MemoryCategory category = MemoryCategory::other;
  };
  const std::vector<Block>& blocks() const { return blocks_; }

  /// How much has happened so far, and the most bytes at once of what was taken since then.
  std::size_t moment() const { return events_.size(); }
  std::int64_t peak_since(std::size_t moment) const;

  /// The blocks of the category that were alive when their bytes summed to the most.
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

/// LibTorch's allocator for Meta from construction to destruction, then the one before is again. Addresses differ from
/// block to block and are nobody's memory. Blocks may outlive it. Used by one thread.
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
  /// The block of a tensor's storage that came from here.
  static int block_of(const c10::Storage& storage);

 private:
  std::shared_ptr<AllocationTrace> trace_ = std::make_shared<AllocationTrace>();
  std::uintptr_t next_ = std::uintptr_t{1} << 44;
  c10::Allocator* before_;
};

}  // namespace zero
