#pragma once
// Cross-entropy of one chunk of logits: log-sum-exp and loss forward, softmax - onehot in place backward. Under
// autograd it works on a copy of the logits.
#include <ATen/core/Tensor.h>

namespace zero {

struct CrossEntropy {
  at::Tensor loss;  // [], fp32 (fp64 in fp64): the sum over the rows
  at::Tensor lse;   // [rows], as loss: log of the sum of exp(logits); not differentiable
};

/// logits [rows, vocabulary] contiguous, targets [rows] int64, all of them trained. Throws Error if a target is not
/// below the vocabulary's size. On a GPU nothing waits for the device. There such a target makes the loss NaN, and a
/// row with a negative one does not count.
CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

/// The same, and turns logits into scale * d loss / d logits in the same pass. scale: [], as loss, or [rows]. A scale
/// per row multiplies the row's gradient and not its loss.
CrossEntropy cross_entropy_gradient_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& scale);

/// Turns logits into scale * d loss / d logits. scale: [] or [rows], as above.
void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale);

}  // namespace zero
