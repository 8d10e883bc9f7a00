#pragma once
// Host memory that a device reads and writes during the computation.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/memory_tracker.h"

namespace zero {

struct HostMemory {
  MemoryCategory category = MemoryCategory::other;
  c10::Device device = c10::kCPU;  // the device that copies it: page-locked for a GPU
};

/// [numel] zeros in a page-aligned mapping of exactly this size. (LibTorch's pinned memory comes in powers of two.)
at::Tensor host_tensor(std::int64_t numel, c10::ScalarType type, const HostMemory& memory);

/// Page-locks a mapping, so that a GPU's copies run asynchronously. Throws Error if the system refuses. In a build
/// without CUDA no device exists, and the call throws.
void lock_pages(void* begin, std::size_t bytes);
void unlock_pages(void* begin) noexcept;

}  // namespace zero
