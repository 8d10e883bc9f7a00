#pragma once
// Travel: the buffers and the stream for moving flat vectors between ranks. All groups share one Travel for weights and
// one for gradients.
#include "comm/stream.h"
#include "zero/core/buffers/buffer_pool.h"

namespace zero {

struct Travel {
  BufferPool* buffers = nullptr;  // for full vectors while they are needed; null: no vector is gathered on use
  SideStream* stream = nullptr;   // collectives run in it, in parallel with the computation
};

}  // namespace zero
