#include "zero/library/include/zero/nn/adaptive_layer_norm.h"

#include <ATen/ATen.h>

namespace zero::nn {

torch::Tensor AdaptiveBranch::norm(const torch::Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, {}, {}, eps) * (1 + scale) + shift;
}

torch::Tensor AdaptiveBranch::gated(const torch::Tensor& x, const torch::Tensor& y) const { return x + gate * y; }

AdaptiveLayerNormZeroImpl::AdaptiveLayerNormZeroImpl(std::int64_t size, std::int64_t condition, std::int64_t branches,
                                                     double eps)
    : size_(size), condition_(condition), branches_(branches), eps_(eps) {
  reset();
}

void AdaptiveLayerNormZeroImpl::reset() {
  linear = register_module("linear", torch::nn::Linear(condition_, 3 * branches_ * size_));
  const torch::NoGradGuard no_grad;
  linear->weight.zero_();
  linear->bias.zero_();
}

std::vector<AdaptiveBranch> AdaptiveLayerNormZeroImpl::forward(const torch::Tensor& condition) {
  const std::vector<at::Tensor> parts = linear(at::silu(condition)).unsqueeze(1).chunk(3 * branches_, -1);
  std::vector<AdaptiveBranch> branches;
  for (std::int64_t b = 0; b < branches_; ++b)
    branches.push_back({parts[std::size_t(3 * b)], parts[std::size_t(3 * b + 1)], parts[std::size_t(3 * b + 2)], eps_});
  return branches;
}

}  // namespace zero::nn
