#pragma once
// AdaLN-Zero (Peebles and Xie 2023, DiT): layer norms without parameters. A condition determines their shift and scale,
// and the gates of the branches that follow them. The gates start at 0, so a block starts as the identity.
//
//   auto branches = ada(condition);                          // of a block with two branches
//   x = branches[0].gated(x, attention(branches[0].norm(x)));
//   x = branches[1].gated(x, mlp(branches[1].norm(x)));
#include <torch/torch.h>

#include <cstdint>
#include <vector>

/// The modulation of one branch; each tensor is [rows, 1, size].
struct AdaptiveBranch {
  torch::Tensor shift, scale, gate;
  double eps = 1e-6;

  /// Returns LayerNorm(x) (1 + scale) + shift, over the last dimension of x [rows, tokens, size].
  torch::Tensor norm(const torch::Tensor& x) const {
    return torch::layer_norm(x, {x.size(-1)}, {}, {}, eps) * (1 + scale) + shift;
  }
  /// Returns x + gate * y.
  torch::Tensor gated(const torch::Tensor& x, const torch::Tensor& y) const { return x + gate * y; }
};

class AdaptiveLayerNormZeroImpl : public torch::nn::Cloneable<AdaptiveLayerNormZeroImpl> {
 public:
  /// `size`: features of x; `condition`: features of the condition; `branches`: number of branches.
  AdaptiveLayerNormZeroImpl(std::int64_t size, std::int64_t condition, std::int64_t branches = 2, double eps = 1e-6)
      : size_(size), condition_(condition), branches_(branches), eps_(eps) {
    reset();
  }

  void reset() override {
    linear = register_module("linear", torch::nn::Linear(condition_, 3 * branches_ * size_));
    const torch::NoGradGuard no_grad;
    linear->weight.zero_();
    linear->bias.zero_();
  }

  /// condition [rows, condition features]. Returns shift, scale and gate, which are linear in silu(condition).
  std::vector<AdaptiveBranch> forward(const torch::Tensor& condition) {
    const std::vector<torch::Tensor> parts = linear(torch::silu(condition)).unsqueeze(1).chunk(3 * branches_, -1);
    std::vector<AdaptiveBranch> branches;
    for (std::int64_t b = 0; b < branches_; ++b)
      branches.push_back(
          {parts[std::size_t(3 * b)], parts[std::size_t(3 * b + 1)], parts[std::size_t(3 * b + 2)], eps_});
    return branches;
  }

  torch::nn::Linear linear{nullptr};  // [3 branches size, condition], initially zeros; by branch: shift, scale, gate

 private:
  std::int64_t size_, condition_, branches_;
  double eps_;
};
TORCH_MODULE(AdaptiveLayerNormZero);
