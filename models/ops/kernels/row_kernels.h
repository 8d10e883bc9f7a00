#pragma once
// Row kernels: a decoder's operations on single rows, for fp32 and bf16 on the CPU. They use plain pointers and no
// LibTorch, and are compiled once per kind of processor. Sums are fp32, in an order that depends only on the row's
// length.
#include <cstdint>

#include "base/numbers/half.h"

namespace zero::kernels {

using zero::Bf16;

template <class T>
struct RmsNormRows {
  const T* x;       // [rows, hidden]
  const T* weight;  // [hidden]
  T* y;             // [rows, hidden]
  float* rstd;      // [rows]
  std::int64_t rows, hidden;
};

template <class T>
struct RmsNormBackwardRows {
  const T* dy;
  const T* x;
  const T* weight;
  const float* rstd;
  T* dx;           // may be dy
  float* dweight;  // [hidden], accumulated; may be null
  std::int64_t rows, hidden;
};

template <class T>
struct SwigluRows {
  const T* gate_up;  // [rows, 2 inner]
  T* y;              // [rows, inner]
  std::int64_t rows, inner;
};

template <class T>
struct SwigluBackwardRows {
  const T* dy;  // [rows, inner]
  const T* gate_up;
  T* dgate_up;
  std::int64_t rows, inner;
};

/// The heads of one token, one after the other.
template <class T>
struct RotateHeads {
  T* x;              // [heads, 2 half]
  const float* cos;  // [half]
  const float* sin;
  std::int64_t heads, half;
};

template <class T>
struct CrossEntropyRow {
  T* logits;  // [vocabulary]
  std::int64_t vocabulary, target;
};

template <class T>
struct RowKernels {
  void (*rms_norm)(const RmsNormRows<T>&, float eps);  // fills y and rstd
  void (*rms_norm_again)(const RmsNormRows<T>&);       // y from rstd
  void (*rms_norm_backward)(const RmsNormBackwardRows<T>&);
  void (*swiglu)(const SwigluRows<T>&);
  void (*swiglu_backward)(const SwigluBackwardRows<T>&);
  void (*rotate)(const RotateHeads<T>&, float direction);  // in place; direction -1 rotates back
  float (*log_sum_exp)(const CrossEntropyRow<T>&);
  void (*cross_entropy_backward)(const CrossEntropyRow<T>&, float lse,
                                 float scale);  // logits = scale (softmax - onehot)
};

/// The best kernels that this machine can run.
template <class T>
const RowKernels<T>& row_kernels();

}  // namespace zero::kernels
