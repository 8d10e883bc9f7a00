#include "zero/optim/rules/composed.h"

#include <ATen/ATen.h>

namespace zero {

// A row is summed by one thread, and so are the sums of rows, which are fewer than LibTorch cuts work at.
at::Tensor ordered_sum(const at::Tensor& values) {
  constexpr std::int64_t row = 4096, most_rows = 4096;
  at::Tensor total = at::zeros({}, values.options().dtype(at::kDouble));
  for (std::int64_t begin = 0; begin < values.numel(); begin += row * most_rows) {
    const std::int64_t n = std::min(row * most_rows, values.numel() - begin), whole = n / row * row;
    const at::Tensor part = values.narrow(0, begin, n);
    if (whole > 0) total += part.narrow(0, 0, whole).view({-1, row}).sum(1, false, at::kDouble).sum();
    if (whole < n) total += part.narrow(0, whole, n - whole).sum(at::kDouble);
  }
  return total;
}

}  // namespace zero
