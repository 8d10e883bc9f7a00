#pragma once
// UsableWeights: checks that the weights at the end of a run are a usable result.
#include "zero/config/config.h"
#include "zero/train/nonfinite/nonfinite_rule.h"
#include "zero/train/training_batches.h"

namespace zero {

/// Runs the weights on data that the run of `steps` steps has trained on. Throws Error if the loss or the gradients are
/// not finite. Weights that are far too large give a finite loss, because norms overflow in their sums, but no finite
/// gradients. Replaces the gradients of the last step. Data that cannot be read again cost a warning. Collective; the
/// same on all ranks.
void require_usable_weights(const Config& config, std::int64_t steps, const NonfiniteRule& rule, Engine& engine,
                            TrainingBatches& batches);

}  // namespace zero
