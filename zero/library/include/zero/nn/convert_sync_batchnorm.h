#pragma once
#include <torch/nn/module.h>

#include <zero/world.h>

namespace zero::nn {

/// From now on every torch::nn::BatchNorm1d, 2d and 3d of the module takes its statistics over all processes in training
/// mode, as SyncBatchNorm does. The modules stay the objects that they are, with their parameters, buffers and options:
/// nothing has to be written otherwise in the net. Returns how many there are. After module.to(...) and before it is
/// sharded: a buffer that is replaced is that of an ordinary norm again. LibTorch's modules refuse a process's batch of one
/// value a channel; SyncBatchNorm takes it. InputError names a norm without running statistics.
int convert_sync_batchnorm(torch::nn::Module& module, const World& world);

}  // namespace zero::nn
