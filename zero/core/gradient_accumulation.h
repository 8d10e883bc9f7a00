#pragma once
// Gradient accumulation: the part of a training step before its update. ModelStates::update() is the other.
#include <cstdint>
#include <functional>
#include <vector>

#include "zero/core/engine.h"

namespace zero {

/// Forward and backward of this rank's micro-batches, one after the other: the gradients are those of `scale` times the
/// loss that is summed over all of them. `context_of` gives the context of micro-batch 0, 1, ..., whose batch it keeps
/// until it is called for the next. Returns the sum of the losses, [1], or where sums are in order each of them, in fp64
/// on the engine's device; `each` gets each of them in any case, `figures` the sums of what the loss and its terms
/// report. Collective.
at::Tensor accumulate_gradients(Engine& engine, std::int64_t micro_batches, double scale,
                                const std::function<ForwardContext(std::int64_t index)>& context_of,
                                std::vector<at::Tensor>* each = nullptr, LossFigures* figures = nullptr);

}  // namespace zero
