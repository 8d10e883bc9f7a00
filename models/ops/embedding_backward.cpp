#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <algorithm>

#include "models/ops/backends.h"

namespace zero {
namespace {

/// The sums of the rows `used`; `place` maps each token to one of them.
at::Tensor sum_rows(const at::Tensor& dy, const at::Tensor& used, const at::Tensor& place, std::int64_t vocabulary) {
  at::Tensor sums = at::zeros({used.numel(), dy.size(1)}, dy.options().dtype(at::toOpMathType(dy.scalar_type())));
  sums.index_add_(0, place, dy.to(sums.scalar_type()));
  at::Tensor dweight = at::zeros({vocabulary, dy.size(1)}, dy.options());
  dweight.index_copy_(0, used, sums.to(dy.scalar_type()));
  return dweight;
}

}  // namespace

at::Tensor composed::embedding_backward(const at::Tensor& dy, const at::Tensor& ids, std::int64_t vocabulary) {
  const auto [used, place] = at::_unique(ids, /*sorted=*/true, /*return_inverse=*/true);
  return sum_rows(dy, used, place, vocabulary);
}

// Assumes the maximal number of rows.
at::Tensor meta::embedding_backward(const at::Tensor& dy, const at::Tensor& ids, std::int64_t vocabulary) {
  const at::Tensor used = at::empty({std::min(vocabulary, ids.numel())}, ids.options());
  return sum_rows(dy, used, at::empty_like(ids), vocabulary);
}

}  // namespace zero
