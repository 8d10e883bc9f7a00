#pragma once
// KTO: learns from single answers, each judged desirable or not (Ethayarajh et al. 2024).
#include <memory>

#include "models/loss/loss.h"

namespace zero {

/// Named tensors [B, 1] that KTO reads besides reference_name (models/loss/dpo_loss.h): 1 for a desirable answer and 0
/// for another; and the divergence from the reference model, the same in all rows of a step.
inline constexpr const char *desirable_name = "desirable", *divergence_name = "divergence";

struct KtoOptions {
  double beta = 0.1;
  double desirable_weight = 1, undesirable_weight = 1;
};

/// A row is one answer, and the denominator is their number. With r = log p - reference, a desirable answer's value is
/// desirable_weight (1 - sigmoid(beta (r - divergence))), another's is undesirable_weight (1 - sigmoid(beta (divergence
/// - r))). The divergence is 0 if the batch has none, which is TRL's "apo_zero_unpaired".
///
/// Figures have TRL's names. "rewards/chosen" and "logps/chosen" are means over desirable answers, "rewards/rejected"
/// and "logps/rejected" over the others. "rewards/margins" is the difference of the rewards. "kl" is the divergence,
/// and "desirable" the share of desirable answers.
std::unique_ptr<Loss> kto_loss(const KtoOptions& options);

}  // namespace zero
