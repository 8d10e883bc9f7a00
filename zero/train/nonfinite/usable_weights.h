#pragma once
// UsableWeights: the weights that a run ends with must be a result to be used.
#include "zero/config/config.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/training_batches.h"

namespace zero {

/// Throws Error where the loss of data that the run of so many steps has trained on is not finite with the weights as
/// they are. Data that cannot be read again cost a warning. Collective; the same on all ranks.
void require_finite_loss(const Config& config, std::int64_t steps, const NonfiniteRule& rule, Engine& engine,
                         TrainingBatches& batches);

}  // namespace zero
