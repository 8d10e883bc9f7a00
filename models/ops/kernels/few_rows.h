#pragma once
// The product of a weight with only a few rows of x, as in generation. Reading the weight dominates its cost. Uses
// plain pointers and no LibTorch, and is compiled once per kind of processor. Sums are fp32, in an order that depends
// only on their length, so a row's result does not depend on the other rows.
#include <cstdint>

#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

/// The most rows that one pass over the weight can process.
constexpr std::int64_t most_few_rows = 8;

template <class T>
struct FewRows {
  const float* x;   // [rows, length]
  const T* weight;  // [columns, length], rows weight_stride apart
  T* y;             // [rows, columns], rows y_stride apart
  std::int64_t rows, length, weight_stride, y_stride;
  bool add;
};

/// Computes y = x weight^T, or with `add` y += x weight^T, for columns [begin, end), rounded once. T is float or Bf16.
template <class T>
void few_rows_product(const FewRows<T>& product, std::int64_t begin, std::int64_t end);

}  // namespace zero::kernels
