#include "offload/memory/host_arena.h"

#include <sys/mman.h>

#include "base/error.h"
#include "base/log.h"
#include "offload/memory/host_tensor.h"

namespace zero {

HostArena::HostArena(int slots, std::size_t slot_bytes, MemoryCategory category, bool locked)
    : slots_(slots),
      slot_bytes_((slot_bytes + 4095) / 4096 * 4096),
      category_(category),
      ledger_(current_ledger()),
      locked_(locked) {
  const std::size_t bytes = static_cast<std::size_t>(slots_) * slot_bytes_;
  void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw Error(text("no memory for ", slots_, " buffers of ", slot_bytes_, " bytes"));
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
  if (ledger_) ledger_->add(category_, static_cast<std::int64_t>(bytes));
}

HostArena::~HostArena() {
  const std::size_t bytes = static_cast<std::size_t>(slots_) * slot_bytes_;
  if (locked_) unlock_pages(base_);
  ::munmap(base_, bytes);
  if (ledger_) ledger_->add(category_, -static_cast<std::int64_t>(bytes));
}

}  // namespace zero
