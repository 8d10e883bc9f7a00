#include "zero/library/include/zero/batch_rows.h"

#include <algorithm>

#include "base/error.h"

namespace zero {

RowRange rows_of_process(std::int64_t rows, int rank, int size) {
  const std::int64_t each = rows / size, more = rows % size;
  return {rank * each + std::min<std::int64_t>(rank, more), each + (rank < more ? 1 : 0)};
}

std::int64_t BatchRows<torch::Tensor>::count(const torch::Tensor& batch) {
  if (!batch.defined() || batch.dim() == 0)
    throw InputError(
        "a batch of the loader holds a tensor without dimensions: the first dimension of each tensor is split over the "
        "processes; stack the samples (torch::data::transforms::Stack<>)");
  return batch.size(0);
}

torch::Tensor BatchRows<torch::Tensor>::take(const torch::Tensor& batch, RowRange rows, torch::Device device) {
  return batch.narrow(0, rows.begin, rows.count).to(device);
}

std::int64_t detail::same_rows(std::int64_t first, std::int64_t second) {
  if (first != second)
    throw InputError("a batch of the loader holds parts of " + std::to_string(first) + " and " +
                     std::to_string(second) +
                     " rows: the first dimension of each is split over the processes, so all must have as many");
  return first;
}

}  // namespace zero
