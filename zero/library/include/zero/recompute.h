#pragma once
// Activation checkpointing (Chen et al. 2016; torch.utils.checkpoint) for modules, sharded or not. Forward keeps only
// the input, and backward runs the module again.
#include <torch/nn/module.h>

#include <functional>
#include <utility>
#include <vector>

namespace zero {

/// Returns body(x), a tensor. Backward runs body again with the same random numbers from the CPU's generator. Other
/// side effects happen twice, such as updates of a BatchNorm's running statistics in training mode (as with
/// torch.utils.checkpoint). `parameters`: all that body uses. Trained ones get gradients; a parameter that is not
/// listed gets none.
torch::Tensor recompute_section(std::function<torch::Tensor(const torch::Tensor&)> body, const torch::Tensor& x,
                                const std::vector<torch::Tensor>& parameters);

/// Does the same for module->forward(x) with the module's own parameters. `Module`: a type made by TORCH_MODULE, or a
/// pointer. The module is kept alive until backward.
template <typename Module>
torch::Tensor recompute(Module module, const torch::Tensor& x) {
  const std::vector<torch::Tensor> parameters = module->parameters();
  return recompute_section(
      [module = std::move(module)](const torch::Tensor& in) mutable { return module->forward(in); }, x, parameters);
}

}  // namespace zero
