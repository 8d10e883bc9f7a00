#pragma once
// Low-rank adapters of a matrix product (LoRA, Hu et al. 2021; DoRA, Liu et al. 2024), as in PEFT. These functions do
// not use autograd: linear() calls them in its own forward and backward. linear() saves only the adapters' own tensors
// and recomputes the rest.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

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
  double dropout = 0;      // probability that an input element is zeroed (others are scaled up); 0 outside training
  std::uint64_t seed = 0;  // of the dropout draws; differs for every module and step
  // The global number of z's first sequence, and the length of sequences. Draws are keyed by sequence and position, so
  // they do not depend on how sequences are divided into batches.
  std::int64_t first_sample = 0;
  std::int64_t sequence = 1;
  std::int64_t first_row = 0;  // first row of z, counted from the beginning of the first sequence
  // If ranks divide the weight's columns, `first_column` is z's first column in the full width. sum_over_columns() sums
  // a tensor in place over the ranks that hold the other columns.
  std::int64_t first_column = 0;
  std::function<void(const at::Tensor&)> sum_over_columns = {};

  std::int64_t rows() const { return b.size(0); }
};

/// Returns 0 or 1 / (1 - p) for every element of z [n, in], in z's type and on its device. Every device draws the same
/// mask, keyed as above.
at::Tensor dropout_mask(const LowRank& adapter, const at::Tensor& z);

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
