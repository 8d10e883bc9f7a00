#pragma once
// BufferPool: a few buffers, allocated once, that groups borrow in turn: addresses repeat every step, and no memory is
// allocated or faulted in inside the training loop.
//
// Where streams run beside each other a buffer has two events: 'free', set by the stream that read it last, and
// 'filled', set by the one that wrote it. Whoever acquires a buffer waits for the first, whoever reads it for the
// second.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/stream.h"

namespace zero {

class BufferPool {
 public:
  /// Takes buffers of these sizes in bytes from the communicator, on whose collectives they will be used.
  BufferPool(Communicator& communicator, const std::vector<std::int64_t>& sizes);

  /// Index of the smallest free buffer that holds `bytes`, of equal ones the longest free. A pool without one is a
  /// broken invariant of the engine. The current stream waits until the buffer has been read.
  int acquire(std::int64_t bytes);
  bool has_room(std::int64_t bytes) const;
  /// The current stream has issued all that reads the buffer.
  void release(int buffer);

  /// The current stream has issued all that writes the buffer; it waits for that.
  void mark_filled(int buffer) { buffers_.at(buffer).filled.set(); }
  void await_filled(int buffer) const { buffers_.at(buffer).filled.wait(); }

  std::int64_t bytes() const;  // of all buffers
  void* memory(int buffer) const { return buffers_.at(buffer).memory.data_ptr(); }
  /// The buffer's first bytes as a flat tensor.
  at::Tensor tensor(int buffer, std::int64_t numel, at::ScalarType type) const;

 private:
  struct Buffer {
    at::Tensor memory;  // bytes
    Event free, filled;
    bool taken = false;
    std::int64_t released = 0;  // counts releases
  };
  std::vector<Buffer> buffers_;
  std::int64_t releases_ = 0;
};

}  // namespace zero
