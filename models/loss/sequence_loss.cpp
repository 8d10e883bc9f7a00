#include "models/loss/sequence_loss.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/loss/token_losses.h"
#include "models/undivided.h"

namespace zero {

LossPart SequenceLoss::of_chunk(at::Tensor& logits, const LossChunk& chunk, const at::Tensor* scale) const {
  const at::Tensor weights = chunk.weights.defined() ? chunk.select(chunk.weights) : at::Tensor();
  return {token_losses(logits, chunk.targets, scale, weights, chunk.vocabulary), {}};
}

at::Tensor SequenceLoss::belongs(const Batch& batch, std::int64_t s) const {
  if (batch.documents.defined()) return batch.documents == s;
  return at::full(batch.targets.sizes(), s == 0, batch.targets.options().dtype(at::kBool));
}

at::Tensor SequenceLoss::trained_tokens(const Batch& batch) const {
  const at::Tensor trained = batch.targets != ignored_target;
  std::vector<at::Tensor> each;
  for (std::int64_t s = 0; s < sequences_; ++s) each.push_back((trained & belongs(batch, s)).sum(1));
  return at::stack(each, 1).to(at::kFloat);
}

at::Tensor SequenceLoss::log_probabilities(const at::Tensor& values, const Batch& batch) const {
  const Undivided sums;
  const at::Tensor weighted = batch.token_weights.defined() ? values * batch.token_weights : values;
  if (sequences_ == 1) return weighted.sum(1, true).neg();
  std::vector<at::Tensor> each;
  for (std::int64_t s = 0; s < sequences_; ++s) each.push_back((weighted * belongs(batch, s)).sum(1));
  return at::stack(each, 1).neg();
}

LossVerdict SequenceLoss::judge(const at::Tensor& values, const Batch& batch) const {
  const SequenceOutcome found = outcome(log_probabilities(values, batch), batch);
  ZERO_CHECK(found.gradient.sizes() == at::IntArrayRef({values.size(0), sequences_}),
             "the gradient of " + name() + " is not [rows, sequences]");
  // log p falls as a token's value grows
  at::Tensor weights = found.gradient.select(1, 0).neg().unsqueeze(1).expand_as(values);
  if (sequences_ > 1) {
    weights = at::zeros_like(values);
    for (std::int64_t s = 0; s < sequences_; ++s)
      weights = weights - found.gradient.select(1, s).unsqueeze(1) * belongs(batch, s);
  }
  if (batch.token_weights.defined()) weights = weights * batch.token_weights;
  return {found.value, weights, found.figures};
}

SequenceOutcome SequenceLoss::outcome(const at::Tensor& log_probabilities, const Batch& batch) const {
  const Undivided sums;
  at::Tensor gradient = at::full_like(log_probabilities, -1);
  if (batch.row_weights.defined()) gradient = gradient * batch.row_weights.unsqueeze(1);
  return {(log_probabilities * gradient).sum(), gradient};
}

}  // namespace zero
