#pragma once
// Activation checkpointing (Chen et al. 2016; torch.utils.checkpoint) for modules that are sharded or not: forward keeps
// the input alone, and backward runs the module once more.
#include <torch/nn/module.h>

#include <functional>
#include <utility>
#include <vector>

namespace zero {

/// body(x), a tensor; in backward it runs again, with the random numbers of the CPU's generator that it had. What else it
/// changes it changes twice: running statistics of a BatchNorm in training mode, as with torch.utils.checkpoint. `parameters`:
/// those that it uses, of which the trained ones get gradients; what is missing there gets none.
torch::Tensor recompute_section(std::function<torch::Tensor(const torch::Tensor&)> body, const torch::Tensor& x,
                                const std::vector<torch::Tensor>& parameters);

/// The same of module->forward(x), with the module's own parameters. `Module`: as TORCH_MODULE makes it, or a pointer, which
/// is kept until backward.
template <typename Module>
torch::Tensor recompute(Module module, const torch::Tensor& x) {
  const std::vector<torch::Tensor> parameters = module->parameters();
  return recompute_section(
      [module = std::move(module)](const torch::Tensor& in) mutable { return module->forward(in); }, x, parameters);
}

}  // namespace zero
