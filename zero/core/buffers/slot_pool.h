#pragma once
// SlotPool: a few buffers, allocated once, that groups borrow in turn: addresses repeat every step, and no memory is
// allocated or faulted in inside the training loop.
//
// Where streams run beside each other a slot has two events: 'free', set by the stream that read it last, and 'filled',
// set by the one that wrote it. Whoever acquires a slot waits for the first, whoever reads it for the second.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/stream.h"

namespace zero {

class SlotPool {
 public:
  /// Takes buffers of these sizes in bytes from the communicator, on whose collectives they will be used.
  SlotPool(Communicator& communicator, const std::vector<std::int64_t>& sizes);

  /// Index of the smallest free slot that holds `bytes`, of equal ones the longest free. A pool without one is a broken
  /// invariant of the engine. The current stream waits until the slot has been read.
  int acquire(std::int64_t bytes);
  /// The current stream has issued all that reads the slot.
  void release(int slot);

  /// The current stream has issued all that writes the slot; it waits for that.
  void mark_filled(int slot) { slots_.at(slot).filled.set(); }
  void await_filled(int slot) const { slots_.at(slot).filled.wait(); }

  std::int64_t bytes() const;  // of all slots
  void* memory(int slot) const { return slots_.at(slot).buffer.data_ptr(); }
  /// The slot's first bytes as a flat tensor.
  at::Tensor tensor(int slot, std::int64_t numel, at::ScalarType type) const;

 private:
  struct Slot {
    at::Tensor buffer;  // bytes
    Event free, filled;
    bool taken = false;
    std::int64_t released = 0;  // counts releases
  };
  std::vector<Slot> slots_;
  std::int64_t releases_ = 0;
};

}  // namespace zero
