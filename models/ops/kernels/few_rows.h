#pragma once
// The product of a weight with only a few rows of x, as in generation. Reading the weight dominates its cost. Uses
// plain pointers and no LibTorch, and is compiled once per kind of processor. Sums are fp32, in an order that depends
// only on their length, so a row's result does not depend on the other rows.
#include <cstdint>

#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

/// The most rows that one pass over the weight can process.
constexpr std::int64_t most_few_rows = 8;

template <class W, class Y>
struct FewRows {
  const float* x;   // [rows, length]
  const W* weight;  // [columns, length], rows weight_stride apart
  Y* y;             // [rows, columns], rows y_stride apart
  std::int64_t rows, length, weight_stride, y_stride;
  bool add;
};

/// Computes y = x weight^T, or with `add` y += x weight^T, for columns [begin, end), rounded once. Y is float or Bf16,
/// and W is Y, Bf16 or Fp16.
template <class W, class Y>
void few_rows_product(const FewRows<W, Y>& product, std::int64_t begin, std::int64_t end);

}  // namespace zero::kernels
