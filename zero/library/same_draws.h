#pragma once
#include <torch/nn/module.h>

#include <zero/world.h>

namespace zero {

/// Logs a warning on the main process where two processes are about to draw, or have drawn, the same masks for a dropout
/// of the module. Collective.
void warn_of_same_draws(const torch::nn::Module& module, const World& world);

}  // namespace zero
