#include "zero/core/buffers/buffer_pool.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/memory_tracker.h"

namespace zero {

BufferPool::BufferPool(Communicator& communicator, const std::vector<std::int64_t>& sizes) {
  CategoryScope scope(MemoryCategory::buffers);
  for (std::int64_t bytes : sizes) {
    at::Tensor buffer = communicator.memory().allocate(bytes, at::kByte);
    const at::Device device = buffer.device();
    buffers_.push_back({std::move(buffer), Event(device), Event(device)});
  }
}

bool BufferPool::has_room(std::int64_t bytes) const {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [&](const Buffer& buffer) { return !buffer.taken && buffer.memory.numel() >= bytes; });
}

int BufferPool::acquire(std::int64_t bytes) {
  int best = -1;
  for (int i = 0; i < int(buffers_.size()); ++i) {
    if (buffers_[i].taken || buffers_[i].memory.numel() < bytes) continue;
    const auto order = [](const Buffer& buffer) { return std::pair(buffer.memory.numel(), buffer.released); };
    if (best < 0 || order(buffers_[i]) < order(buffers_[best])) best = i;
  }
  ZERO_CHECK(best >= 0,
             "none of " + std::to_string(buffers_.size()) + " buffers is free for " + std::to_string(bytes) + " bytes");
  buffers_[best].taken = true;
  buffers_[best].free.wait();
  return best;
}

void BufferPool::release(int buffer) {
  ZERO_CHECK(buffers_.at(buffer).taken, "buffer " + std::to_string(buffer) + " was free already");
  buffers_[buffer].taken = false;
  buffers_[buffer].released = ++releases_;
  buffers_[buffer].free.set();
}

std::int64_t BufferPool::bytes() const {
  std::int64_t sum = 0;
  for (const Buffer& buffer : buffers_) sum += buffer.memory.numel();
  return sum;
}

at::Tensor BufferPool::tensor(int buffer, std::int64_t numel, at::ScalarType type) const {
  return buffers_.at(buffer).memory.narrow(0, 0, numel * std::int64_t(c10::elementSize(type))).view(type);
}

}  // namespace zero
