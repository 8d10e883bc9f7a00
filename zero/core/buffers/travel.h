#pragma once
// Travel: the means by which flat vectors go between ranks. All groups share one for weights and one for gradients.
#include "comm/stream.h"
#include "zero/core/buffers/buffer_pool.h"

namespace zero {

struct Travel {
  BufferPool* buffers = nullptr;  // for whole vectors while they are needed; null: none comes and goes
  SideStream* stream = nullptr;   // collectives run in it, in parallel with the computation
};

}  // namespace zero
