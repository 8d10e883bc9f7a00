#pragma once
// UsableWeights: the weights that a run ends with must be a result to be used.
#include "zero/config/config.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/training_batches.h"

namespace zero {

/// Throws Error if the weights give data that the run of so many steps has trained on a loss or gradients that are not
/// finite. Weights that are far too large give a finite loss, since the norms' sums overflow, but no finite gradients.
/// Replaces the gradients of the last step. Data that cannot be read again cost a warning. Collective; the same on all
/// ranks.
void require_usable_weights(const Config& config, std::int64_t steps, const NonfiniteRule& rule, Engine& engine,
                            TrainingBatches& batches);

}  // namespace zero
