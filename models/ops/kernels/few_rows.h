#pragma once
// A product of a weight with few rows of x, where reading the weight dominates, as in a step of generation. Plain
// pointers, no LibTorch, compiled once per processor kind. Sums are fp32, in an order that depends only on their
// length, so a row does not depend on the other rows.
#include <cstdint>

#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

/// The most rows that one pass over the weight takes.
constexpr std::int64_t most_few_rows = 8;

template <class T>
struct FewRows {
  const float* x;   // [rows, length]
  const T* weight;  // [columns, length], a row every weight_stride
  T* y;             // [rows, columns], a row every y_stride
  std::int64_t rows, length, weight_stride, y_stride;
  bool add;
};

/// y = x weight^T, or with `add` y += x weight^T, rounded once, in the columns from `begin` to `end`. T: float, Bf16.
template <class T>
void few_rows_product(const FewRows<T>& product, std::int64_t begin, std::int64_t end);

}  // namespace zero::kernels
