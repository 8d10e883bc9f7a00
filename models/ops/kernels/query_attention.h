#pragma once
// Attention of one new token to the keys and values of a cache, as in generation. Uses plain pointers and no LibTorch,
// and is compiled once per kind of processor. Sums are fp32, in an order that depends only on the sizes.
#include <cstddef>
#include <cstdint>

#include "models/ops/kernels/row_kernels.h"

namespace zero::kernels {

/// The query heads that share one head of keys and values, for one token.
template <class T>
struct QueryAttention {
  const float* q;    // [heads, head_dim], rotated
  const T* k;        // [length, head_dim]
  const T* v;        // [length, head_dim]
  const bool* seen;  // [length]: the columns that count; null: all. At least one counts.
  T* y;              // [heads, head_dim]
  std::int64_t heads, length, head_dim;
  float scale;     // multiplies scores
  float* weights;  // [heads, length], overwritten
};

/// Computes y = softmax(scale q k^T) v, rounded once. T is float or Bf16.
template <class T>
void attend_query(const QueryAttention<T>& query);

}  // namespace zero::kernels
