#pragma once
// Low-rank adapters of a matrix product (LoRA, Hu et al. 2021; DoRA, Liu et al. 2024), by PEFT's rules. These functions
// do not use autograd: linear() calls them in its own forward and backward. It saves only the adapters' own tensors and
// recomputes the rest.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace zero {

/// An adapter's addition to rows [begin, begin + rows) of a weight [out, in]: scale B A, applied to the input after
/// dropout. With a magnitude (DoRA) the adapted rows are also brought to these lengths: y = magnitude / |W + scale B A|
/// (W + scale B A) z. The length counts as a constant for the gradient.
struct LowRank {
  at::Tensor a;          // [r, in]
  at::Tensor b;          // [rows, r]
  at::Tensor magnitude;  // [rows], or undefined
  std::int64_t begin = 0;
  double scale = 1;
  double dropout = 0;      // probability that an input element is zeroed, the others are scaled up; 0 outside training
  std::uint64_t seed = 0;  // of the dropout's draws: differs for every module and step
  // Global number of z's first sequence, and its length. Draws are keyed by sequence and place in it, so they do not
  // depend on the division of sequences into batches.
  std::int64_t first_sample = 0;
  std::int64_t sequence = 1;
  std::int64_t first_row = 0;  // of z, counted from the beginning of the first sequence
  // If the weight is cut along its columns: z's first column in the full width, and the sum over the ranks that hold
  // the other columns, in place.
  std::int64_t first_column = 0;
  std::function<void(const at::Tensor&)> sum_over_columns = {};

  std::int64_t rows() const { return b.size(0); }
};

/// Zero or 1 / (1 - p) for every element of z [n, in], in its type and on its device. Every device draws the same,
/// keyed as above.
at::Tensor dropout_mask(const LowRank& adapter, const at::Tensor& z);

/// y [n, out] += the adapter's addition for z [n, in]. Rows with a magnitude are rescaled, so y must not hold a
/// residual yet.
void add_low_rank(const LowRank& adapter, const at::Tensor& z, const at::Tensor& weight, at::Tensor& y);

struct LowRankGradients {
  at::Tensor a, b, magnitude;
};
/// The adapter's gradients for dy [n, out]. Adds the gradient through the adapter to dz [n, in], if defined. With a
/// magnitude it rescales dy's columns in place, as the weight's own gradients need it.
LowRankGradients low_rank_backward(const LowRank& adapter, const at::Tensor& z, const at::Tensor& weight,
                                   at::Tensor& dy, at::Tensor& dz);

/// |W + scale B A| of each adapted row, over all its columns, fp32 (fp64 in fp64). With B = 0 it is DoRA's start
/// magnitude.
at::Tensor row_lengths(const LowRank& adapter, const at::Tensor& weight);

}  // namespace zero
