#pragma once
// The cross-entropy of the trained tokens: the loss of pretraining and of fine-tuning.
#include "models/loss/loss.h"

namespace zero {

/// The sum of -log p(target) over the trained tokens, each multiplied by its token's and its row's weight. The
/// denominator is the number of trained tokens.
const Loss& cross_entropy_loss();

}  // namespace zero
