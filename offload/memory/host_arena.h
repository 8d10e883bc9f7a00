#pragma once
// HostArena: the fixed, page-aligned memory of a tier. It may be registered with io_uring (and with a GPU).
#include <cstddef>
#include <cstdint>

#include "base/memory_tracker.h"

namespace zero {

/// Blocks of equal size in one mapping, 4096-aligned, zero at first. Booked in the creating thread's tracker under the
/// category. It does not use the tensors' allocator, whose blocks have headers and other neighbours. `locked`: pages
/// are locked for a GPU's copies.
class HostArena {
 public:
  HostArena(int blocks, std::size_t block_bytes, MemoryCategory category,
            bool locked = false);  // rounded up to 4096; Error without enough memory
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
