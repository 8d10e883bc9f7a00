#include "comm/collective_memory.h"

#include <ATen/Functions.h>

namespace zero {

at::Tensor TorchMemory::allocate(std::int64_t numel, at::ScalarType type) {
  return at::empty({numel}, at::TensorOptions().dtype(type).device(device_));
}

}  // namespace zero
