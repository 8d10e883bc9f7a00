#pragma once
// AdaLN-Zero (Peebles and Xie 2023, DiT): layer norms without parameters. A condition sets their shift and scale, and
// the gates of the branches after them. The gates start at 0, so a block starts as the identity.
//
//   auto branches = ada(condition);                          // of a block with two branches
//   x = branches[0].gated(x, attention(branches[0].norm(x)));
//   x = branches[1].gated(x, mlp(branches[1].norm(x)));
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace zero::nn {

/// The modulation of one branch; each tensor is [rows, 1, size].
struct AdaptiveBranch {
  torch::Tensor shift, scale, gate;
  double eps = 1e-6;

  /// LayerNorm(x) (1 + scale) + shift, over the last dimension of x [rows, tokens, size].
  torch::Tensor norm(const torch::Tensor& x) const;
  /// x + gate * y.
  torch::Tensor gated(const torch::Tensor& x, const torch::Tensor& y) const;
};

class AdaptiveLayerNormZeroImpl : public torch::nn::Cloneable<AdaptiveLayerNormZeroImpl> {
 public:
  /// `size`: features of x; `condition`: features of the condition; `branches`: number of branches.
  AdaptiveLayerNormZeroImpl(std::int64_t size, std::int64_t condition, std::int64_t branches = 2, double eps = 1e-6);

  void reset() override;
  /// condition [rows, condition features]: shift, scale and gate are linear in silu(condition).
  std::vector<AdaptiveBranch> forward(const torch::Tensor& condition);

  torch::nn::Linear linear{nullptr};  // [3 branches size, condition], initially zeros; by branch: shift, scale, gate

 private:
  std::int64_t size_, condition_, branches_;
  double eps_;
};
TORCH_MODULE(AdaptiveLayerNormZero);

}  // namespace zero::nn
