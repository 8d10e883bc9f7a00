#pragma once
// Gradient accumulation: the part of a training step before its update. ModelStates::update() is the second part.
#include <cstdint>
#include <vector>

#include "zero/core/engine.h"

namespace zero {

/// Runs forward and backward of this rank's micro-batches, one after the other or in the order of the pipeline's
/// schedule. The gradients are those of `scale` times the loss, summed over all micro-batches. `context_of` may be
/// called several times for a micro-batch; the batch is held for as long as it is needed. Returns the summed loss, [1],
/// in fp64 on the engine's device. With StatesOptions::sums_in_order it returns each micro-batch's loss,
/// [micro_batches]. `each` always receives each micro-batch's loss. `figures` receives the summed metrics that the loss
/// and its terms report. All stages of a pipeline get the same values. Collective.
at::Tensor accumulate_gradients(Engine& engine, std::int64_t micro_batches, double scale, const ContextOf& context_of,
                                std::vector<at::Tensor>* each = nullptr, LossFigures* figures = nullptr);

}  // namespace zero
