#pragma once
// The head's arithmetic: final norm, product with the output matrix, and a loss. It processes tokens in chunks, so the
// logits of all tokens never exist at once.
#include <ATen/core/Tensor.h>

#include "models/ops/head_rows.h"
#include "models/unit.h"

namespace zero {

struct HeadWeights {
  at::Tensor norm;    // [hidden], of an RMSNorm; undefined if x is already normalised
  at::Tensor output;  // [vocabulary, hidden], or this rank's slice if context.tensor_ranks divide it
  double eps = 1e-5;
  std::int64_t first_token = 0, vocabulary = 0;  // the slice's first token, and the size of the full vocabulary
};

/// Computes the loss of the pass (`context.loss`) for context.batch, [] in fp32 (fp64 for fp64). Logits are made in
/// chunks of at most context.logits_bytes. x is [B, T, hidden], or this rank's tokens [1, own, hidden] if ranks divide
/// them. If ranks divide the vocabulary, no rank holds all logits of a token. The ranks exchange two numbers per token
/// (Loss::of_chunk), and all ranks of the tensor axis get the same result. On a context axis, the result is the loss of
/// this rank's tokens. The axis's first rank gets the whole loss of sequences (Loss::looks_twice). Tokens with
/// ignored_target are not multiplied. The loss's metrics go to context.terms.
///
/// If gradients are wanted, the pass that computes the loss also turns the logits into their gradient, for
/// context.gradient_scale. If the backward pass receives another gradient of the loss, results are multiplied by the
/// ratio of the two, and rounded once more. A GPU always multiplies, because reading the ratio would make the host
/// wait.
///
/// If the trained tokens fit into one chunk, its logits' gradient is kept for the backward pass. With several chunks,
/// each chunk's backward runs at once, and the output matrix's gradient is summed in fp32. If the loss needs two passes
/// (Loss::looks_twice), several chunks are multiplied twice.
at::Tensor head_loss(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context);

/// Computes -log p(target) of every token, [B, T] in fp32 (fp64 for fp64), or 0 for untrained tokens. There is no
/// gradient. Works in chunks, like head_loss(). On a context axis, every rank gets the values of all tokens.
at::Tensor head_token_losses(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context);

/// Computes logits [B, T, vocabulary] in fp32 (fp64 for fp64), without gradient. If the vocabulary is divided, gathers
/// them.
at::Tensor head_logits(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context);

}  // namespace zero
