#include "comm/fake/meta_communicator.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace zero {

at::Tensor MetaCommunicator::allocate(std::int64_t numel, at::ScalarType type) {
  return at::empty({numel}, at::TensorOptions().dtype(type).device(at::kMeta));
}

void MetaCommunicator::reserve(const std::vector<std::int64_t>&, std::int64_t largest_sum) {
  if (size() > 1 && largest_sum_) *largest_sum_ = std::max(*largest_sum_, largest_sum);
}

}  // namespace zero
