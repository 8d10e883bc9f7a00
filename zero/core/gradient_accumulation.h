#pragma once
// Gradient accumulation: the part of a training step before its update. ModelStates::update() is the other.
#include <cstdint>
#include <vector>

#include "zero/core/engine.h"

namespace zero {

/// Runs forward and backward of this rank's micro-batches, one after the other, or as the pipeline's schedule has them.
/// The gradients are those of `scale` times the loss, summed over all of them. `context_of` gives the context of each
/// micro-batch once or more, and its batch lives as long as it is needed. Returns the summed loss, [1], in fp64 on the
/// engine's device. With StatesOptions::sums_in_order it returns each loss, [micro_batches]. `each` always gets each
/// loss, `figures` the sums of the figures that the loss and its terms report. Stages of a pipeline get the same.
/// Collective.
at::Tensor accumulate_gradients(Engine& engine, std::int64_t micro_batches, double scale, const ContextOf& context_of,
                                std::vector<at::Tensor>* each = nullptr, LossFigures* figures = nullptr);

}  // namespace zero
