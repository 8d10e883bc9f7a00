#pragma once
#include <torch/nn/module.h>

#include <zero/world.h>

namespace zero {

/// Warns on the main process if two processes are about to draw, or have drawn, the same dropout masks.
/// Collective.
void warn_of_same_draws(const torch::nn::Module& module, const World& world);

}  // namespace zero
