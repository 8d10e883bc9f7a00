#pragma once
// A product with a weight of few rows of x, where reading the weight is the work: a token's step of a generation.
// Plain pointers, no LibTorch, compiled once for each kind of processor. A sum is fp32, in an order that depends on its
// length alone, so a row comes out the same whatever rows stand beside it.
#include <cstdint>

#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

/// The rows that one pass over the weight takes.
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
