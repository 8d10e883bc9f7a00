#pragma once
// Host memory that a device reads and writes during the computation.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/memory_tracker.h"

namespace zero {

struct HostMemory {
  MemoryCategory category = MemoryCategory::other;
  c10::Device device = c10::kCPU;  // the device that copies the memory, which is page-locked for a GPU
};

/// A tensor of `numel` zeros in a page-aligned mapping of exactly this size. (LibTorch rounds pinned memory up to a
/// power of two.)
at::Tensor host_tensor(std::int64_t numel, c10::ScalarType type, const HostMemory& memory);

/// Page-locks a mapping, so that copies to and from a GPU run asynchronously. Throws Error if the system does not allow
/// it, and always in a build without CUDA.
void lock_pages(void* begin, std::size_t bytes);
void unlock_pages(void* begin) noexcept;

}  // namespace zero
