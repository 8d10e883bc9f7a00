#pragma once
// HostArena: the fixed, page-aligned memory of a tier. It can be registered with io_uring and with a GPU.
#include <cstddef>
#include <cstdint>

#include "base/memory_tracker.h"

namespace zero {

/// Blocks of equal size in one mapping, 4096-byte aligned and initially zero. The creating thread's tracker counts them
/// under the category. The tensors' allocator cannot be used, because its blocks have headers and share pages. `locked`
/// says whether pages are locked for copies to and from a GPU.
class HostArena {
 public:
  HostArena(int blocks, std::size_t block_bytes, MemoryCategory category,
            bool locked = false);  // rounded up to 4096; throws Error if memory does not suffice
  ~HostArena();
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  int blocks() const { return blocks_; }
  std::size_t block_bytes() const { return block_bytes_; }
  std::byte* block(int index) const { return base_ + static_cast<std::size_t>(index) * block_bytes_; }

 private:
  int blocks_;
  std::size_t block_bytes_;
  MemoryCategory category_;
  MemoryTracker* tracker_;
  bool locked_;
  std::byte* base_ = nullptr;
};

}  // namespace zero
