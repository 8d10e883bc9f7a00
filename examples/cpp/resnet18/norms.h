#pragma once
// The norms that ResNet18 can have.
#include <torch/torch.h>

#include <zero/nn/sync_batch_norm.h>
#include "net.h"

/// BatchNorm over the batch of all processes, or with `local` over each process's own rows.
inline MakeNorm batch_norm(const zero::World& world, bool local, double eps = 1e-5, double momentum = 0.1) {
  return [=](std::int64_t channels) {
    const auto options = torch::nn::BatchNormOptions(channels).eps(eps).momentum(momentum);
    return local ? torch::nn::AnyModule(torch::nn::BatchNorm2d(options))
                 : torch::nn::AnyModule(zero::nn::SyncBatchNorm2d(options, world));
  };
}

inline MakeNorm group_norm(std::int64_t groups, double eps = 1e-5) {
  return [=](std::int64_t channels) {
    return torch::nn::AnyModule(torch::nn::GroupNorm(torch::nn::GroupNormOptions(groups, channels).eps(eps)));
  };
}
