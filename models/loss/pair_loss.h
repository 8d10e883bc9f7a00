#pragma once
// PairLoss: a loss over pairs of a chosen and a rejected answer. A row is a pair: document 0 is the chosen sequence,
// document 1 the rejected one. The trained tokens are those of the answers.
#include "models/loss/sequence_loss.h"

namespace zero {

/// The sum of a value per pair, each multiplied by its row's weight. The denominator is the number of pairs.
///
/// Figures have TRL's names. "rewards/chosen" and "rewards/rejected" are means over pairs, "rewards/margins" is their
/// difference. "rewards/accuracies" is the share of pairs whose chosen answer has the higher reward. "logps/chosen" and
/// "logps/rejected" are means of the answers' log p.
class PairLoss : public SequenceLoss {
 public:
  double count(const RowCounts&) const final { return 1; }
  std::vector<std::string> figures() const final;

 protected:
  using SequenceLoss::SequenceLoss;

  /// Autograd differentiates `losses` by the log p that value_of() received.
  struct Value {
    at::Tensor losses;   // [B]
    at::Tensor rewards;  // [B, 2]
    at::Tensor shown;    // [B, 2]: the log p that figures show
  };
  virtual Value value_of(const at::Tensor& log_probabilities, const Batch& batch) const = 0;

 private:
  SequenceOutcome outcome(const at::Tensor& log_probabilities, const Batch& batch) const final;
};

}  // namespace zero
