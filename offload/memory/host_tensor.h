#pragma once
// Host memory that a device reads and writes beside the computation.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/memory_tracker.h"

namespace zero {

struct HostMemory {
  MemoryCategory category = MemoryCategory::other;
  c10::Device device = c10::kCPU;  // whose copies it serves: page-locked for a GPU
};

/// [numel] zeros in a page-aligned mapping of their own, of the size asked for (LibTorch's pinned memory comes in
/// powers of two).
at::Tensor host_tensor(std::int64_t numel, c10::ScalarType type, const HostMemory& memory);

/// Page-locks a mapping, so that a GPU's copies run beside the host; Error when the system refuses. In a build without
/// CUDA there is no device to ask for it, and the call throws.
void lock_pages(void* begin, std::size_t bytes);
void unlock_pages(void* begin) noexcept;

}  // namespace zero
