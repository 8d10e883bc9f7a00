#include "zero/core/buffers/slot_pool.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/ledger.h"

namespace zero {

SlotPool::SlotPool(Communicator& communicator, const std::vector<std::int64_t>& sizes) {
  MemoryScope scope(MemoryCategory::buffers);
  for (std::int64_t bytes : sizes) {
    at::Tensor buffer = communicator.memory().allocate(bytes, at::kByte);
    const at::Device device = buffer.device();
    slots_.push_back({std::move(buffer), Event(device), Event(device)});
  }
}

int SlotPool::acquire(std::int64_t bytes) {
  int best = -1;
  for (int i = 0; i < int(slots_.size()); ++i) {
    if (slots_[i].taken || slots_[i].buffer.numel() < bytes) continue;
    const auto order = [](const Slot& slot) { return std::pair(slot.buffer.numel(), slot.released); };
    if (best < 0 || order(slots_[i]) < order(slots_[best])) best = i;
  }
  ZERO_CHECK(best >= 0,
             "none of " + std::to_string(slots_.size()) + " slots is free for " + std::to_string(bytes) + " bytes");
  slots_[best].taken = true;
  slots_[best].free.wait();
  return best;
}

void SlotPool::release(int slot) {
  ZERO_CHECK(slots_.at(slot).taken, "slot " + std::to_string(slot) + " was free already");
  slots_[slot].taken = false;
  slots_[slot].released = ++releases_;
  slots_[slot].free.set();
}

std::int64_t SlotPool::bytes() const {
  std::int64_t sum = 0;
  for (const Slot& slot : slots_) sum += slot.buffer.numel();
  return sum;
}

at::Tensor SlotPool::tensor(int slot, std::int64_t numel, at::ScalarType type) const {
  return slots_.at(slot).buffer.narrow(0, 0, numel * std::int64_t(c10::elementSize(type))).view(type);
}

}  // namespace zero
