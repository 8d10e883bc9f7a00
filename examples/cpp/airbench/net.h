#pragma once
// The network of cifar10-airbench (Jordan 2024, arXiv 2404.00498): a frozen layer that whitens 2 x 2 patches, then
// three groups of two convolutions. It has 2.0 million parameters.
#include <torch/torch.h>

#include <zero/nn/sync_batch_norm.h>

/// The filters [24, 3, 2, 2] that whiten the patches of `pictures` [rows, 3, height, width], and their negatives.
inline torch::Tensor whitening_filters(const torch::Tensor& pictures) {
  const torch::Tensor patches =
      pictures.unfold(2, 2, 1).unfold(3, 2, 1).permute({0, 2, 3, 1, 4, 5}).reshape({-1, 12}).to(torch::kDouble);
  const auto [variances, directions] = at::linalg_eigh(patches.t().mm(patches) / double(patches.size(0)));
  const torch::Tensor filters = (directions / (variances + 5e-4).sqrt()).t().reshape({12, 3, 2, 2});
  return torch::cat({filters, -filters}).to(torch::kFloat);
}

inline torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out) {
  torch::nn::Conv2d made(torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
  torch::nn::init::dirac_(made->weight.narrow(0, 0, in));  // the first filters pass their input on
  return made;
}

/// Its scale stays 1. Only the bias learns.
inline zero::nn::SyncBatchNorm2d norm(std::int64_t channels, const zero::World& world) {
  zero::nn::SyncBatchNorm2d made(torch::nn::BatchNormOptions(channels).eps(1e-12).momentum(0.4), world);
  made->weight.set_requires_grad(false);
  return made;
}

struct GroupImpl : torch::nn::Module {
  GroupImpl(std::int64_t in, std::int64_t out, const zero::World& world)
      : conv1(register_module("conv1", convolution(in, out))),
        norm1(register_module("norm1", norm(out, world))),
        conv2(register_module("conv2", convolution(out, out))),
        norm2(register_module("norm2", norm(out, world))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor half = torch::gelu(norm1(torch::max_pool2d(conv1(x), 2)));
    return torch::gelu(norm2(conv2(half)));
  }
  torch::nn::Conv2d conv1;
  zero::nn::SyncBatchNorm2d norm1;
  torch::nn::Conv2d conv2;
  zero::nn::SyncBatchNorm2d norm2;
};
TORCH_MODULE(Group);

struct AirbenchImpl : torch::nn::Module {
  AirbenchImpl(const torch::Tensor& filters, const zero::World& world)
      : whiten(register_module("whiten", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 24, 2)))),
        groups(register_module(
            "groups", torch::nn::Sequential(Group(24, 64, world), Group(64, 256, world), Group(256, 256, world)))),
        head(register_module("head", torch::nn::Linear(torch::nn::LinearOptions(256, 10).bias(false)))) {
    const torch::NoGradGuard no_grad;
    whiten->weight.copy_(filters);
    whiten->weight.set_requires_grad(false);
    whiten->bias.zero_();
  }
  /// x fp32 [rows, 3, 32, 32] -> fp32 [rows, 10].
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor y = groups->forward(torch::gelu(whiten(x.to(head->weight.dtype()))));
    return head(torch::max_pool2d(y, 3).flatten(1)).to(torch::kFloat) / 9;
  }
  torch::nn::Conv2d whiten;
  torch::nn::Sequential groups;
  torch::nn::Linear head;
};
TORCH_MODULE(Airbench);
