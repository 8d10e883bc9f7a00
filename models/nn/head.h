#pragma once
// The head's arithmetic: final norm, product with the output matrix, and cross-entropy. It processes tokens in chunks,
// so the logits of all tokens never exist at once.
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
  double gradient_scale = 1;             // the expected gradient of the loss
  bool ignores_targets_on_meta = false;  // whether targets on Meta, without data, count as partly ignored
};

/// Sum over the trained tokens of the cross-entropy, [] in fp32 (fp64 in fp64). x [B, T, hidden], targets [B, T] int64.
/// Tokens with ignored_target are left out of the products.
///
/// If gradients are wanted, the pass that computes the loss turns the logits into their gradient, for
/// options.gradient_scale. If the backward pass brings another gradient of the loss, results are multiplied by the
/// ratio of the two, and rounded once more. A GPU always multiplies, since nobody waits to read the ratio.
///
/// If the trained tokens fit into one chunk, its logits' gradient is kept for the backward pass. Several chunks run
/// backward at once, with the output matrix's gradient summed in fp32.
at::Tensor head_loss(const at::Tensor& x, const HeadWeights& weights, const at::Tensor& targets,
                     const HeadLossOptions& options = {});

/// logits [B, T, vocabulary] in fp32 (fp64 in fp64), without gradient.
at::Tensor head_logits(const at::Tensor& x, const HeadWeights& weights);

}  // namespace zero
