#include "models/weight_chunks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

void check_values(const at::Tensor& chunk, const TensorSpec& tensor, at::ScalarType type) {
  const auto [low, high] = at::aminmax(chunk);
  const double largest = std::max(-low.item<double>(), high.item<double>());
  if (!(largest <= std::numeric_limits<float>::max()))  // NaN, too
    throw InputError(text("tensor \"", tensor.name, "\" holds values that are not finite: the weights are broken"));
  if (type == at::kHalf && largest > 65504.0)
    throw InputError(text("tensor \"", tensor.name, "\" holds ", largest, ", more than fp16 can; choose bf16 or fp32"));
}

}  // namespace

void read_in_chunks(WeightSource& weights, const TensorSpec& tensor, const ChunkOptions& options,
                    const std::function<void(const at::Tensor&)>& take) {
  const std::int64_t columns = tensor.shape.back(), rows = tensor.numel() / columns;
  const std::int64_t fit = options.max_elements / columns / options.rows_together;
  const std::int64_t step = std::min(rows, std::max<std::int64_t>(fit, 1) * options.rows_together);
  const at::Tensor buffer = at::empty({step, columns}, at::kFloat);
  for (std::int64_t row = 0; row < rows; row += step) {
    const at::Tensor chunk = buffer.narrow(0, 0, std::min(step, rows - row));
    weights.read(tensor, row * columns, chunk.numel(), chunk.view({-1}));
    check_values(chunk, tensor, options.type);
    take(chunk);
  }
}

}  // namespace zero
