#include "zero/optim/rules/composed.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace zero {

namespace {

constexpr std::int64_t row = 4096, most_rows = 4096, rows_of_squares = 64;

at::Tensor squares(const at::Tensor& values) { return values.to(at::kDouble, false, /*copy=*/true).square_(); }

// Returns the sums of squares by row. Only the squares of a few rows at a time are in memory.
at::Tensor sums_of_squares(const at::Tensor& rows) {
  const at::Tensor sums = at::empty({rows.size(0)}, rows.options().dtype(at::kDouble));
  for (std::int64_t begin = 0; begin < rows.size(0); begin += rows_of_squares) {
    const std::int64_t n = std::min(rows_of_squares, rows.size(0) - begin);
    sums.narrow(0, begin, n).copy_(squares(rows.narrow(0, begin, n)).sum(1));
  }
  return sums;
}

// Each row is summed by one thread. So are the sums of rows, since there are too few for LibTorch to divide the work.
template <class SumsOfRows, class SumOfRest>
at::Tensor sum_in_order(const at::Tensor& values, const SumsOfRows& sums_of, const SumOfRest& sum_of_rest) {
  at::Tensor total = at::zeros({}, values.options().dtype(at::kDouble));
  for (std::int64_t begin = 0; begin < values.numel(); begin += row * most_rows) {
    const std::int64_t n = std::min(row * most_rows, values.numel() - begin), whole = n / row * row;
    const at::Tensor part = values.narrow(0, begin, n);
    if (whole > 0) total += sums_of(part.narrow(0, 0, whole).view({-1, row})).sum();
    if (whole < n) total += sum_of_rest(part.narrow(0, whole, n - whole));
  }
  return total;
}

}  // namespace

at::Tensor ordered_sum(const at::Tensor& values) {
  return sum_in_order(
      values, [](const at::Tensor& rows) { return rows.sum(1, false, at::kDouble); },
      [](const at::Tensor& rest) { return rest.sum(at::kDouble); });
}

at::Tensor ordered_sum_of_squares(const at::Tensor& values) {
  return sum_in_order(values, sums_of_squares, [](const at::Tensor& rest) { return squares(rest).sum(); });
}

}  // namespace zero
