#pragma once
// ORPO: learns the chosen answers, and raises their odds above those of the rejected ones (Hong et al. 2024). It needs
// no reference model.
#include <memory>

#include "models/loss/loss.h"

namespace zero {

/// The named tensor [B, T] that ORPO reads: 1 where the target belongs to an answer.
inline constexpr const char* answers_name = "answers";

/// A pair's value is -beta log sigmoid(log odds of the chosen answer - log odds of the rejected one). The odds are p /
/// (1 - p), where log p is the mean over the answer's tokens. The loss adds the mean of -log p over all tokens of the
/// step's chosen sequences. As in TRL, that includes their prompts, so the trained tokens must hold them.
std::unique_ptr<Loss> orpo_loss(double beta);

}  // namespace zero
