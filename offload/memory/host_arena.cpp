#include "offload/memory/host_arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "offload/memory/host_tensor.h"

namespace zero {

HostArena::HostArena(int blocks, std::size_t block_bytes, MemoryCategory category, bool locked)
    : blocks_(blocks),
      block_bytes_((std::max<std::size_t>(block_bytes, 1) + 4095) / 4096 * 4096),  // a mapping needs at least one byte
      category_(category),
      tracker_(current_tracker()),
      locked_(locked) {
  const std::size_t bytes = static_cast<std::size_t>(blocks_) * block_bytes_;
  void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw Error(text("no memory for ", blocks_, " buffers of ", block_bytes_, " bytes"));
  ::madvise(map, bytes, MADV_HUGEPAGE);
  if (locked_) {
    try {
      lock_pages(map, bytes);
    } catch (...) {
      ::munmap(map, bytes);
      throw;
    }
  }
  base_ = static_cast<std::byte*>(map);
  if (tracker_) tracker_->add(category_, static_cast<std::int64_t>(bytes));
}

HostArena::~HostArena() {
  const std::size_t bytes = static_cast<std::size_t>(blocks_) * block_bytes_;
  if (locked_) unlock_pages(base_);
  ::munmap(base_, bytes);
  if (tracker_) tracker_->add(category_, -static_cast<std::int64_t>(bytes));
}

}  // namespace zero
