#pragma once
// The types of activations at the boundaries of layers under tensor parallelism (Shoeybi et al. 2019), and the
// differentiable collectives between them. The backward of each collective is another collective: that of an all-gather
// is a reduce-scatter, and that of sum_parts() is the same sum.
//
// On an axis of one rank all types are [B, T, width], and nothing is sent.
#include <ATen/core/Tensor.h>

#include "models/parallel/token_split.h"

namespace zero {

/// This rank's tokens in full width, [1, own, width]: the input of norms and residual sums.
struct TokenPart {
  at::Tensor x;
};

/// The part's tokens, only this rank's columns or heads: [B, T, width / ranks], or [1, part, width / ranks] on a
/// context axis. It is the input of activation functions, and of attention after a HeadSwap.
struct WidthPart {
  at::Tensor x;
};

/// The part's tokens in full width: [B, T, width] or [1, part, width]. The value is the sum of all ranks' tensors.
struct PartialSum {
  at::Tensor x;
};

/// The part's tokens in full width, the same on all ranks of the tensor axis.
struct Replicated {
  at::Tensor x;
};

/// All-gather. Its backward is a reduce-scatter.
Replicated gather_tokens(const TokenPart& x, const TokenSplit& split);
/// Reduce-scatter. Its backward is an all-gather.
TokenPart scatter_tokens(const PartialSum& x, const TokenSplit& split);
/// Sums numbers over ranks. Each rank computed them from its own part, and uses the sums for its own part. The backward
/// is the same sum.
at::Tensor sum_parts(const at::Tensor& x, const TokenSplit& split);

}  // namespace zero
