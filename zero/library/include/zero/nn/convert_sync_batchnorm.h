#pragma once
#include <torch/nn/module.h>

#include <zero/world.h>

namespace zero::nn {

/// Makes every torch::nn::BatchNorm1d, 2d and 3d of the module use statistics over all processes in training mode, as
/// SyncBatchNorm does. The norms stay the same objects, with their parameters, buffers and options. Returns the number
/// of converted norms. Call it after module.to(...) and before sharding, since replacing a buffer turns its norm back
/// into an ordinary one. LibTorch's modules reject a local batch with one value per channel; SyncBatchNorm accepts it.
/// Throws InputError that names the norm if a norm has no running statistics.
int convert_sync_batchnorm(torch::nn::Module& module, const World& world);

}  // namespace zero::nn
