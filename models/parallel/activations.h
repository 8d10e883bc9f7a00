#pragma once
// The types of activations at the boundaries of layers under tensor parallelism (Shoeybi et al. 2019), and the
// differentiable collectives between them. Each collective is the dual of another: a gather runs backward as a
// reduce-scatter, and a sum of parts as a sum of parts.
//
// On an axis of one rank all types are [B, T, width], and nothing travels.
#include <ATen/core/Tensor.h>

#include "models/parallel/token_split.h"

namespace zero {

/// This rank's tokens in full width: [1, own, width]. Norms and residual sums take it.
struct TokenPart {
  at::Tensor x;
};

/// The tokens of the part in this rank's columns or heads: [B, T, width / ranks], or [1, part, width / ranks] on a
/// context axis. Activations take it, and attention behind a HeadSwap.
struct WidthPart {
  at::Tensor x;
};

/// The tokens of the part in full width, shaped likewise. The value is the sum over the ranks' tensors.
struct PartialSum {
  at::Tensor x;
};

/// The tokens of the part in full width, alike on all ranks of the tensor axis.
struct Replicated {
  at::Tensor x;
};

/// All-gather; backward a reduce-scatter.
Replicated gather_tokens(const TokenPart& x, const TokenSplit& split);
/// Reduce-scatter; backward an all-gather.
TokenPart scatter_tokens(const PartialSum& x, const TokenSplit& split);
/// The sum over ranks of numbers that each rank computed from its own part and uses for its own part again; backward
/// the same sum.
at::Tensor sum_parts(const at::Tensor& x, const TokenSplit& split);

}  // namespace zero
