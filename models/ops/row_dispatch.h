#pragma once
// Calls row kernels for tensors: selects the kernel by type, and spreads rows over threads. No kernel runs for tensors
// on the meta device, which have no memory, so running a computation there measures its memory.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "models/ops/kernels/few_rows.h"
#include "models/ops/kernels/row_kernels.h"

namespace zero {

/// Calls f(float{}) or f(kernels::Bf16{}), depending on `type`. Returns false if no kernel supports the type.
template <class F>
bool with_kernel_type(at::ScalarType type, F&& f) {
  if (type == at::kFloat) return f(float{}), true;
  if (type == at::kBFloat16) return f(kernels::Bf16{}), true;
  return false;
}

/// Does the same for the type of `tensors`. The first of them is x [rows, columns]. Returns false unless all are
/// contiguous and have the same type and device.
template <class F>
bool with_row_kernels(std::initializer_list<const at::Tensor*> tensors, F&& f) {
  const at::Tensor& x = **tensors.begin();
  for (const at::Tensor* t : tensors)
    if (!t->is_contiguous() || t->scalar_type() != x.scalar_type() || t->device() != x.device()) return false;
  return x.dim() == 2 && with_kernel_type(x.scalar_type(), f);
}

template <class T>
T* data_of(const at::Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}
template <class T>
const T* read_of(const at::Tensor& t) {
  return static_cast<const T*>(t.const_data_ptr());
}

/// Calls f(begin, end) for ranges of the rows of x, one range per thread. Small jobs run on the calling thread. Does
/// nothing on the meta device.
template <class F>
void by_rows(const at::Tensor& x, std::int64_t rows, std::int64_t row_elements, F&& f) {
  if (x.is_meta()) return;
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, row_elements));
  at::parallel_for(0, rows, grain, f);
}

/// out = x weight^T, or with `add` out += x weight^T, for at most most_few_rows rows of x, in fp32. The weight's rows
/// are weight_stride apart.
template <class W, class Y>
void few_rows_into(const at::Tensor& out, const at::Tensor& x, const W* weight, std::int64_t weight_stride, bool add) {
  const kernels::FewRows<W, Y> product{read_of<float>(x), weight,        data_of<Y>(out), x.size(0),
                                       x.size(1),         weight_stride, out.stride(0),   add};
  by_rows(out, out.size(1), x.size(1),
          [&](std::int64_t begin, std::int64_t end) { kernels::few_rows_product(product, begin, end); });
}

}  // namespace zero
