#pragma once
// Cross-entropy of one chunk of logits: log-sum-exp and loss forward, softmax - onehot in place backward.
#include <ATen/core/Tensor.h>

namespace zero {

struct CrossEntropy {
  at::Tensor loss;  // [], precise_type: the sum over the rows
  at::Tensor lse;   // [rows], precise_type: log of the sum of exp(logits)
};

/// logits [rows, vocabulary] contiguous, targets [rows] int64, all of them to be trained. Throws Error when a target is
/// not below the vocabulary's size.
CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

/// Turns logits into scale * d loss / d logits. scale: [] in precise_type.
void cross_entropy_backward_(at::Tensor& logits, const at::Tensor& targets, const at::Tensor& lse,
                             const at::Tensor& scale);

}  // namespace zero
