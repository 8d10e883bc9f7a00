#pragma once
// From tensors to the row kernels: which tensors they take, and rows spread over threads. A tensor on Meta, which has a
// size and no memory, goes the way of a CPU tensor with nothing launched, so that what a computation will hold can be
// counted by running it.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "models/ops/kernels/row_kernels.h"

namespace zero {

/// Calls f(float{}) or f(kernels::Bf16{}) when x is a CPU or Meta tensor of that type; false when the kernels do not
/// take it.
template <class F>
bool with_row_kernels(const at::Tensor& x, F&& f) {
  if (!x.is_cpu() && !x.is_meta()) return false;
  if (x.scalar_type() == at::kFloat) return f(float{}), true;
  if (x.scalar_type() == at::kBFloat16) return f(kernels::Bf16{}), true;
  return false;
}

template <class T>
T* data_of(const at::Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}
template <class T>
const T* read_of(const at::Tensor& t) {
  return static_cast<const T*>(t.const_data_ptr());
}

/// f(begin, end) over ranges of the rows of x, one range a thread; small jobs stay on the caller. Nothing on Meta.
template <class F>
void by_rows(const at::Tensor& x, std::int64_t rows, std::int64_t row_elements, F&& f) {
  if (x.is_meta()) return;
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, row_elements));
  at::parallel_for(0, rows, grain, f);
}

}  // namespace zero
