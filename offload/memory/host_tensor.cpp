#include "offload/memory/host_tensor.h"

#include <ATen/ATen.h>

#include <memory>

#include "offload/memory/host_arena.h"

namespace zero {

at::Tensor host_tensor(std::int64_t numel, c10::ScalarType type, const HostMemory& memory) {
  const auto bytes = static_cast<std::size_t>(numel) * c10::elementSize(type);
  const auto arena =
      std::make_shared<HostArena>(1, std::max<std::size_t>(bytes, 1), memory.category, memory.device.is_cuda());
  return at::from_blob(
      arena->block(0), {numel}, [arena](void*) {}, at::TensorOptions().dtype(type));
}

}  // namespace zero
