#pragma once
#include <torch/nn/module.h>

#include <zero/world.h>

namespace zero::nn {

/// Makes every torch::nn::BatchNorm1d, 2d and 3d of the module use statistics over all processes in training mode, as
/// SyncBatchNorm does. The modules stay the same objects, with their parameters, buffers and options. Returns their
/// number. Call after module.to(...) and before sharding: replacing a buffer turns its norm back into an ordinary one.
/// LibTorch's modules reject a local batch of one value per channel; SyncBatchNorm accepts it. InputError names a norm
/// without running statistics.
int convert_sync_batchnorm(torch::nn::Module& module, const World& world);

}  // namespace zero::nn
