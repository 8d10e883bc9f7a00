#pragma once
// BufferPool: a few buffers, allocated once, that groups borrow in turn. Groups get the same addresses in every step,
// so the training loop neither allocates memory nor takes page faults.
//
// With several streams a buffer has two events. The stream that read the buffer last sets 'free', for which acquire()
// waits. The stream that wrote the buffer sets 'filled', for which readers wait.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/stream.h"

namespace zero {

class BufferPool {
 public:
  /// Allocates buffers of these sizes in bytes from the communicator whose collectives will use them.
  BufferPool(Communicator& communicator, const std::vector<std::int64_t>& sizes);

  /// Returns the index of the smallest free buffer that holds `bytes`; among equal sizes, the buffer that has been free
  /// longest. Throws InternalError if no buffer is free, since the engine sizes the pool to its needs. The current
  /// stream waits until the buffer's last reader is done.
  int acquire(std::int64_t bytes);
  bool has_room(std::int64_t bytes) const;
  /// Call it when the current stream has issued everything that reads the buffer.
  void release(int buffer);

  /// Call mark_filled() when the current stream has issued everything that writes the buffer. await_filled() makes the
  /// current stream wait for those writes.
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
