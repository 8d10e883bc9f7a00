#pragma once
// The head's arithmetic: final norm, product with the output matrix, and the cross-entropy, which goes through the
// tokens in chunks so that the logits of all tokens never need to exist at once.
#include <ATen/core/Tensor.h>

#include "models/ops/head_rows.h"

namespace zero {

struct HeadWeights {
  at::Tensor norm;    // [hidden], of an RMSNorm; undefined: x is normed already
  at::Tensor output;  // [vocabulary, hidden]
  double eps = 1e-5;
};

struct HeadLossOptions {
  std::int64_t logits_bytes = 0;         // of a chunk, at most; 0: the default of the device
  double gradient_scale = 1;             // what the gradient of the loss will be
  bool ignores_targets_on_meta = false;  // what targets on Meta, without numbers, are taken to hold
};

/// Sum over the trained tokens of the cross-entropy, [] in fp32 (fp64 in fp64). x [B, T, hidden], targets [B, T] int64;
/// tokens with ignored_target are left out of the products altogether.
/// Where gradients are wanted the logits become theirs in the pass that finds the loss, for options.gradient_scale; if
/// the backward pass brings another gradient of the loss, results are multiplied by its ratio to that one, and rounded
/// once more (a GPU multiplies in any case, since nobody waits to look at the ratio). While the trained tokens fit into one chunk, its logits' gradient is kept for the backward pass; several
/// chunks are taken back at once, with the output matrix's gradient summed in fp32.
at::Tensor head_loss(const at::Tensor& x, const HeadWeights& weights, const at::Tensor& targets,
                     const HeadLossOptions& options = {});

/// logits [B, T, vocabulary] in fp32 (fp64 in fp64), without gradient.
at::Tensor head_logits(const at::Tensor& x, const HeadWeights& weights);

}  // namespace zero
