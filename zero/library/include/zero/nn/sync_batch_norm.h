#pragma once
// BatchNorm over the batch of all processes (Ioffe and Szegedy 2015; torch.nn.SyncBatchNorm): output, gradients and
// running statistics are those of torch.nn.BatchNorm on one process with the rows of all, however they are split; a
// process may have none. Parameters and buffers have BatchNorm's names, so that state dicts fit.
//
// In training mode forward and backward are one collective each: all processes call them in the same order. Everything
// up to the output is computed in fp32 (fp64 in fp64), what processes exchange in fp64. There is no second derivative.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <ostream>

#include <zero/world.h>

namespace zero::nn {

/// The normalized input [rows, channels, ...] with the statistics of all processes' rows. Weight and bias [channels] may
/// be undefined. Running statistics, where defined, move by `momentum` towards these, the variance towards the unbiased
/// one. InputError where all processes together have less than two values a channel. Collective.
torch::Tensor sync_batch_norm(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias,
                              const torch::Tensor& running_mean, const torch::Tensor& running_var, double momentum,
                              double eps, const World& world);

/// What the norms below share; `D` as in torch::nn::BatchNormImplBase.
template <std::size_t D, typename Derived>
class SyncBatchNormImplBase : public torch::nn::NormImplBase<D, Derived, torch::nn::BatchNormOptions> {
 public:
  SyncBatchNormImplBase(const torch::nn::BatchNormOptions& options, const World& world)
      : torch::nn::NormImplBase<D, Derived, torch::nn::BatchNormOptions>(options), world_(world) {}

  torch::Tensor forward(const torch::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

 protected:
  void _check_input_dim(const torch::Tensor& input) override;

 private:
  World world_;
};

/// Of [rows, channels] or [rows, channels, length].
class SyncBatchNorm1dImpl : public SyncBatchNormImplBase<1, SyncBatchNorm1dImpl> {
 public:
  using SyncBatchNormImplBase<1, SyncBatchNorm1dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm1d);

/// Of [rows, channels, height, width].
class SyncBatchNorm2dImpl : public SyncBatchNormImplBase<2, SyncBatchNorm2dImpl> {
 public:
  using SyncBatchNormImplBase<2, SyncBatchNorm2dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm2d);

/// Of [rows, channels, depth, height, width].
class SyncBatchNorm3dImpl : public SyncBatchNormImplBase<3, SyncBatchNorm3dImpl> {
 public:
  using SyncBatchNormImplBase<3, SyncBatchNorm3dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm3d);

}  // namespace zero::nn
