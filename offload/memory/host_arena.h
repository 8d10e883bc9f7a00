#pragma once
// HostArena: the fixed memory of a tier, page-aligned, which may be registered with io_uring (and with a GPU).
#include <cstddef>
#include <cstdint>

#include "base/ledger.h"

namespace zero {

/// Slots of equal size in one mapping, 4096-aligned, zero at first. Booked in the creating thread's ledger under the
/// category; not from the tensors' allocator, whose blocks have headers and other neighbours. `locked`: pages are
/// locked for a GPU's copies.
class HostArena {
 public:
  HostArena(int slots, std::size_t slot_bytes, MemoryCategory category,
            bool locked = false);  // rounded up to 4096; Error when there is no memory
  ~HostArena();
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  int slots() const { return slots_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::byte* slot(int index) const { return base_ + static_cast<std::size_t>(index) * slot_bytes_; }

 private:
  int slots_;
  std::size_t slot_bytes_;
  MemoryCategory category_;
  Ledger* ledger_;
  bool locked_;
  std::byte* base_ = nullptr;
};

}  // namespace zero
