#pragma once
// SlotPool: a few buffers, allocated once, that groups borrow in turn: addresses repeat every step, and no memory is
// allocated or faulted in inside the training loop.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace zero {

class SlotPool {
 public:
  /// Takes buffers of these sizes in bytes from the communicator, on whose collectives they will be used.
  SlotPool(Communicator& communicator, const std::vector<std::int64_t>& sizes);

  /// Index of the smallest free slot that holds `bytes`. A pool without one is a broken invariant of the engine.
  int acquire(std::int64_t bytes);
  void release(int slot);

  void* memory(int slot) const { return slots_.at(slot).buffer.data_ptr(); }
  /// The slot's first bytes as a flat tensor.
  at::Tensor tensor(int slot, std::int64_t numel, at::ScalarType type) const;

 private:
  struct Slot {
    at::Tensor buffer;  // bytes
    bool taken = false;
  };
  std::vector<Slot> slots_;
};

}  // namespace zero
