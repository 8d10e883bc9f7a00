#pragma once
// BatchNorm over the batch of all processes (Ioffe and Szegedy 2015; torch.nn.SyncBatchNorm). Output, gradients and
// running statistics equal those of torch.nn.BatchNorm on one process with all rows. A process may have no rows.
// Parameters and buffers have BatchNorm's names, so state dicts are compatible.
//
// In training mode, forward and backward each use one collective, so all processes must call them in the same order.
// They compute in fp32 (fp64 for fp64 inputs) and exchange fp64 values. Second derivatives are not supported.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <ostream>

#include <zero/world.h>

namespace zero::nn {

/// Normalizes the input [rows, channels, ...] with the statistics of all processes' rows. Weight and bias [channels]
/// may be undefined. If running statistics are defined, they move towards the batch's mean and unbiased variance by the
/// factor `momentum`. Throws InputError if all processes together have fewer than two values per channel. Collective.
torch::Tensor sync_batch_norm(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias,
                              const torch::Tensor& running_mean, const torch::Tensor& running_var, double momentum,
                              double eps, const World& world);

/// Common base of the norms below; `D` as in torch::nn::BatchNormImplBase.
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

/// For [rows, channels] or [rows, channels, length].
class SyncBatchNorm1dImpl : public SyncBatchNormImplBase<1, SyncBatchNorm1dImpl> {
 public:
  using SyncBatchNormImplBase<1, SyncBatchNorm1dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm1d);

/// For [rows, channels, height, width].
class SyncBatchNorm2dImpl : public SyncBatchNormImplBase<2, SyncBatchNorm2dImpl> {
 public:
  using SyncBatchNormImplBase<2, SyncBatchNorm2dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm2d);

/// For [rows, channels, depth, height, width].
class SyncBatchNorm3dImpl : public SyncBatchNormImplBase<3, SyncBatchNorm3dImpl> {
 public:
  using SyncBatchNormImplBase<3, SyncBatchNorm3dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm3d);

}  // namespace zero::nn
