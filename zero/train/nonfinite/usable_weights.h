#pragma once
// UsableWeights: checks that the weights at the end of a run are a usable result.
#include "zero/config/config.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/training_batches.h"

namespace zero {

/// Runs the model on data of the finished run of `steps` steps. Throws Error if the loss or the gradients are not
/// finite. Weights that are far too large give a finite loss, because norms overflow in their sums, but not finite
/// gradients. Replaces the gradients of the last step. If the data cannot be read again, logs a warning. The result is
/// the same on all ranks. Collective.
void require_usable_weights(const Config& config, std::int64_t steps, const NonfiniteRule& rule, Engine& engine,
                            TrainingBatches& batches);

}  // namespace zero
