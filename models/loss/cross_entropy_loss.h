#pragma once
// The cross-entropy of the trained tokens: the loss of pretraining and of fine-tuning.
#include "models/loss/loss.h"

namespace zero {

/// Sum over the trained tokens of -log p(target), each multiplied by its weight and its row's. The denominator counts
/// trained tokens.
const Loss& cross_entropy_loss();

}  // namespace zero
