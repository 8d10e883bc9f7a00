#pragma once
// SequenceLoss: a loss that is a function of whole sequences' log-probabilities, as in preference learning.
#include "models/loss/loss.h"

namespace zero {

/// The result of a sequence-level loss.
struct SequenceOutcome {
  at::Tensor value;         // []
  at::Tensor gradient;      // [B, S]: d value / d log-probability
  at::Tensor figures = {};  // [k] metrics, in the order of figures(); undefined if there are none
};

/// A sequence's log p is the sum of log p(target) over its trained tokens, each multiplied by its weight in
/// Batch::token_weights. A row holds S sequences: if S = 1, the sequence is the whole row; otherwise sequence s is
/// document s. A sequence without trained tokens, or a document that a row does not have, has log p = 0.
///
/// This class itself computes the negative log-likelihood of sequences: the sum of -weight * log p, weighted by
/// Batch::row_weights. Other losses override outcome().
class SequenceLoss : public Loss {
 public:
  explicit SequenceLoss(std::int64_t sequences_of_a_row = 1) : sequences_(sequences_of_a_row) {}

  std::string name() const override { return "sequence_likelihood"; }
  /// Counts sequences. A loss over pairs should count 1 per row.
  double count(const RowCounts&) const override { return double(sequences_); }
  LossPart of_chunk(at::Tensor& logits, const LossChunk& chunk, const at::Tensor* scale) const final;
  bool takes_slices() const final { return true; }
  bool looks_twice() const final { return true; }
  LossVerdict judge(const at::Tensor& values, const Batch& batch) const final;

  /// log p [B, S] of the sequences, from the losses [B, T] of their tokens (token_losses_of in models/decoder).
  at::Tensor log_probabilities(const at::Tensor& values, const Batch& batch) const;

 protected:
  /// Computes the loss from log p [B, S] in fp32 (fp64 for fp64). B is at least 1.
  virtual SequenceOutcome outcome(const at::Tensor& log_probabilities, const Batch& batch) const;

  /// [B, T] bool, true where a token belongs to sequence s. Sequences may share tokens.
  virtual at::Tensor belongs(const Batch& batch, std::int64_t s) const;

  /// The numbers of trained tokens of the sequences, [B, S] in fp32.
  at::Tensor trained_tokens(const Batch& batch) const;

 private:
  std::int64_t sequences_;
};

}  // namespace zero
