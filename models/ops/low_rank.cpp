#include "models/ops/low_rank.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "models/ops/matrix_product.h"
#include "models/undivided.h"

namespace zero {

namespace {

at::Tensor columns_of(const LowRank& adapter, const at::Tensor& y) {
  return y.narrow(1, adapter.begin, adapter.rows());
}

}  // namespace

at::Tensor row_lengths(const LowRank& adapter, const at::Tensor& weight) {
  const at::ScalarType precise = at::toOpMathType(weight.scalar_type());
  const at::Tensor w = weight.narrow(0, adapter.begin, adapter.rows()).to(precise);
  const at::Tensor a = adapter.a.to(precise), b = adapter.b.to(precise);
  const at::Tensor wa = matrix_product(w, a.t()), baa = matrix_product(b, matrix_product(a, a.t()));
  const Undivided sums;
  const at::Tensor cross = wa.mul(b).sum(1), own = baa.mul(b).sum(1);
  const at::Tensor squares = w.square().sum(1).add(cross, 2 * adapter.scale).add(own, adapter.scale * adapter.scale);
  if (adapter.sum_over_columns) adapter.sum_over_columns(squares);
  return squares.sqrt();
}

void add_low_rank(const LowRank& adapter, const at::Tensor& z, const at::Tensor& weight, at::Tensor& y) {
  const at::Tensor u =
      matrix_product(adapter.dropout.share > 0 ? z.mul(dropout_mask(adapter.dropout, z)) : z, adapter.a.t());
  at::Tensor part = columns_of(adapter, y);
  part.add_(matrix_product(u, adapter.b.t()), adapter.scale);
  if (adapter.magnitude.defined())
    part.mul_(
        adapter.magnitude.to(at::toOpMathType(y.scalar_type())).div(row_lengths(adapter, weight)).to(y.scalar_type()));
}

LowRankGradients low_rank_backward(const LowRank& adapter, const at::Tensor& z, const at::Tensor& weight,
                                   at::Tensor& dy, at::Tensor& dz) {
  LowRankGradients gradients;
  const at::Tensor mask = adapter.dropout.share > 0 ? dropout_mask(adapter.dropout, z) : at::Tensor();
  const at::Tensor dropped = mask.defined() ? z.mul(mask) : z;
  const at::Tensor u = matrix_product(dropped, adapter.a.t());
  at::Tensor part = columns_of(adapter, dy);
  if (adapter.magnitude.defined()) {
    const at::ScalarType precise = at::toOpMathType(dy.scalar_type());
    const at::Tensor lengths = row_lengths(adapter, weight);
    const at::Tensor before = matrix_product(z, weight.narrow(0, adapter.begin, adapter.rows()).t())
                                  .add_(matrix_product(u, adapter.b.t()), adapter.scale);
    const Undivided sums;
    gradients.magnitude =
        part.to(precise).mul(before.to(precise)).sum(0).div(lengths).to(adapter.magnitude.scalar_type());
    part.mul_(adapter.magnitude.to(precise).div(lengths).to(dy.scalar_type()));
  }
  const at::Tensor dpart = part.contiguous();
  gradients.b = matrix_product(dpart.t(), u).mul_(adapter.scale);
  const at::Tensor du = matrix_product(dpart, adapter.b).mul_(adapter.scale);
  gradients.a = matrix_product(du.t(), dropped);
  if (dz.defined()) {
    const at::Tensor through = matrix_product(du, adapter.a);
    dz.add_(mask.defined() ? through.mul(mask) : through);
  }
  return gradients;
}

}  // namespace zero
