#pragma once
// The head's arithmetic: final norm, product with the output matrix, and a loss. It processes tokens in chunks, so the
// logits of all tokens never exist at once.
#include <ATen/core/Tensor.h>

#include "models/ops/head_rows.h"
#include "models/unit.h"

namespace zero {

struct HeadWeights {
  at::Tensor norm;    // [hidden], of an RMSNorm; undefined: x is normed already
  at::Tensor output;  // [vocabulary, hidden]; the own slice of it if context.tensor_ranks divide the vocabulary
  double eps = 1e-5;
  std::int64_t first_token = 0, vocabulary = 0;  // of such a slice, and the full size
};

/// The loss of the pass (`context.loss`) for context.batch, [] in fp32 (fp64 in fp64), in chunks of logits of at most
/// context.logits_bytes. x [B, T, hidden]; the rank's own tokens [1, own, hidden] if ranks divide them. If they divide
/// the vocabulary, nobody holds all logits of a token: ranks exchange two numbers (Loss::of_chunk), and the result is
/// alike on all ranks of the tensor axis. On a context axis it is the loss of the rank's part. Tokens with
/// ignored_target are left out of the products. The loss's figures go to context.terms.
///
/// If gradients are wanted, the pass that computes the loss turns the logits into their gradient, for
/// context.gradient_scale. If the backward pass brings another gradient of the loss, results are multiplied by the
/// ratio of the two, and rounded once more. A GPU always multiplies, since nobody waits to read the ratio.
///
/// If the trained tokens fit into one chunk, its logits' gradient is kept for the backward pass. Several chunks run
/// backward at once, with the output matrix's gradient summed in fp32. For a loss that looks twice the products of
/// several chunks are computed twice.
at::Tensor head_loss(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context);

/// -log p(target) of every token, [B, T] in fp32 (fp64 in fp64), 0 where none is trained; without gradient. In chunks
/// as above.
at::Tensor head_token_losses(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context);

/// logits [B, T, vocabulary] in fp32 (fp64 in fp64), without gradient. Those of a divided vocabulary are gathered.
at::Tensor head_logits(const at::Tensor& x, const HeadWeights& weights, const ForwardContext& context);

}  // namespace zero
