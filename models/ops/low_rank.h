#pragma once
// Low-rank adapters of a matrix product (LoRA, Hu et al. 2021; DoRA, Liu et al. 2024), as in PEFT. These functions do
// not use autograd: linear() calls them in its own forward and backward. linear() saves only the adapters' own tensors
// and recomputes the rest.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "models/ops/dropout.h"

namespace zero {

/// An adapter adds scale B A to rows [begin, begin + rows) of a weight [out, in], applied to the input z after dropout.
/// With a magnitude (DoRA), the norms of the adapted rows become that magnitude: y = magnitude / |W + scale B A| (W +
/// scale B A) z. For the gradient, |W + scale B A| counts as a constant.
struct LowRank {
  at::Tensor a;          // [r, in]
  at::Tensor b;          // [rows, r]
  at::Tensor magnitude;  // [rows], or undefined
  std::int64_t begin = 0;
  double scale = 1;
  Dropout dropout = {};  // of z
  // If ranks divide the weight's columns, it sums a tensor in place over the ranks that hold the other columns.
  std::function<void(const at::Tensor&)> sum_over_columns = {};

  std::int64_t rows() const { return b.size(0); }
};

/// y [n, out] += the adapter's output for z [n, in]. If there is a magnitude, the adapted columns of y are rescaled, so
/// y must not yet include a residual.
void add_low_rank(const LowRank& adapter, const at::Tensor& z, const at::Tensor& weight, at::Tensor& y);

struct LowRankGradients {
  at::Tensor a, b, magnitude;
};
/// The adapter's gradients for dy [n, out]. Adds the gradient through the adapter to dz [n, in], if defined. If there
/// is a magnitude, also rescales dy's columns in place, because the gradients of the weight need that.
LowRankGradients low_rank_backward(const LowRank& adapter, const at::Tensor& z, const at::Tensor& weight,
                                   at::Tensor& dy, at::Tensor& dz);

/// |W + scale B A| of each adapted row, over all its columns, fp32 (fp64 for fp64). With B = 0 this is DoRA's initial
/// magnitude.
at::Tensor row_lengths(const LowRank& adapter, const at::Tensor& weight);

}  // namespace zero
