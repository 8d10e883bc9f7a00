#pragma once
// Activation checkpointing (Chen et al. 2016; torch.utils.checkpoint) for modules that are sharded or not: forward keeps
// the input alone, and backward runs the module once more.
#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace zero {

/// body(x), a tensor; in backward it runs again, with the random numbers of the CPU's generator that it had. `parameters`:
/// those that it uses, of which the trained ones get gradients; what is missing there gets none.
torch::Tensor recompute_section(std::function<torch::Tensor(const torch::Tensor&)> body, const torch::Tensor& x,
                                const std::vector<torch::Tensor>& parameters);

/// The same of module->forward(x), with the module's own parameters. The module outlives the backward.
template <typename Module>
torch::Tensor recompute(Module& module, const torch::Tensor& x) {
  return recompute_section([&module](const torch::Tensor& in) { return module->forward(in); }, x, module->parameters());
}

}  // namespace zero
