#pragma once
// Travel: the means by which flat vectors go between ranks, shared by all groups: weights have theirs, gradients theirs.
#include "comm/stream.h"
#include "zero/core/buffers/buffer_pool.h"

namespace zero {

struct Travel {
  BufferPool* buffers = nullptr;  // whole vectors, while they are needed; null where none comes and goes
  SideStream* stream = nullptr;   // in which collectives run, beside the computation
};

}  // namespace zero
