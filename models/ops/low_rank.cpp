#include "models/ops/low_rank.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include "base/philox.h"
#include "models/ops/backends.h"
#include "models/ops/matrix_product.h"
#include "models/ops/row_dispatch.h"
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
  const at::Tensor u = matrix_product(adapter.dropout > 0 ? z.mul(dropout_mask(adapter, z)) : z, adapter.a.t());
  at::Tensor part = columns_of(adapter, y);
  part.add_(matrix_product(u, adapter.b.t()), adapter.scale);
  if (adapter.magnitude.defined())
    part.mul_(
        adapter.magnitude.to(at::toOpMathType(y.scalar_type())).div(row_lengths(adapter, weight)).to(y.scalar_type()));
}

LowRankGradients low_rank_backward(const LowRank& adapter, const at::Tensor& z, const at::Tensor& weight,
                                   at::Tensor& dy, at::Tensor& dz) {
  LowRankGradients gradients;
  const at::Tensor mask = adapter.dropout > 0 ? dropout_mask(adapter, z) : at::Tensor();
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

at::Tensor composed::dropout_mask(const at::Tensor& z, double dropout, std::int64_t seed, std::int64_t first_sample,
                                  std::int64_t sequence, std::int64_t first_row, std::int64_t first_column) {
  const std::int64_t rows = z.size(0), columns = z.size(1);
  const at::Device drawn_on = z.is_meta() ? at::kMeta : at::kCPU;
  const at::Tensor mask = at::empty({rows, columns}, at::TensorOptions().dtype(at::kFloat).device(drawn_on));
  const std::uint32_t threshold = dropout_threshold(dropout);
  const float kept = kept_scale(dropout);
  // a random number costs as much as a few operations
  by_rows(mask, rows, 4 * columns, [&](std::int64_t begin, std::int64_t end) {
    float* out = data_of<float>(mask);
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t row = first_row + r, sample = first_sample + row / sequence, place = row % sequence;
      const PhiloxKey key{static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(sample << 32 | place)};
      for (std::int64_t c = 0; c < columns;) {
        const auto words = philox_group(key, static_cast<std::uint64_t>((first_column + c) / 32));
        for (std::int64_t i = (first_column + c) % 32; i < 32 && c < columns; ++i, ++c)
          out[r * columns + c] = words[i / 8][i % 8] < threshold ? 0.f : kept;
      }
    }
  });
  return mask.to(z.options());
}

}  // namespace zero
