#pragma once
// Cross-entropy of one chunk of logits. Forward computes log-sum-exp and loss, backward computes softmax - onehot in
// place. Under autograd it works on a copy of the logits.
#include <ATen/core/Tensor.h>

namespace zero {

struct CrossEntropy {
  at::Tensor loss;  // [], fp32 (fp64 in fp64): the sum over the rows
  at::Tensor lse;   // [rows], in the loss's type: log of the sum of exp(logits); not differentiable
};

/// logits [rows, vocabulary] contiguous, targets [rows] int64, all of them trained. Throws Error if a target is outside
/// the vocabulary. On a GPU, the host does not check. A target beyond the vocabulary makes the loss NaN, and a row
/// with a negative target is skipped.
CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

/// Does the same, but also turns logits into scale * d loss / d logits in the same pass. `scale` is [] or [rows], in
/// the loss's type. A scale per row multiplies the row's gradient but not its loss.
CrossEntropy cross_entropy_gradient_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& scale);

/// Turns logits into scale * d loss / d logits. `scale` is [] or [rows], as above.
void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale);

}  // namespace zero
