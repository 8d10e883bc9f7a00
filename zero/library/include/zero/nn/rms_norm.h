#pragma once
// RMSNorm (Zhang and Sennrich 2019; torch.nn.RMSNorm of one dimension): y = weight * x / sqrt(mean(x^2) + eps) over the
// last dimension. zero's fused operation computes in fp32 (fp64 for fp64 inputs) and rounds once.
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <ostream>

namespace zero::nn {

class RMSNormImpl : public torch::nn::Cloneable<RMSNormImpl> {
 public:
  explicit RMSNormImpl(std::int64_t size, double eps = 1e-6);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  /// x [..., size] has the weight's type.
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight;  // [size], initially 1

 private:
  std::int64_t size_;
  double eps_;
};
TORCH_MODULE(RMSNorm);

}  // namespace zero::nn
