#pragma once
// What becomes of torch's batch_norm where a sharded model's parameters, or a converted norm's statistics, are its arguments.
#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "zero/library/include/zero/world.h"

namespace zero::nn {

/// From now on every batch_norm in training mode that is given this running mean takes its statistics over the world.
void synchronize(const at::Tensor& running_mean, const World& world);

/// Whether all there is has one process, in the type of the input: LibTorch's batch norm takes it then, and rounds as its
/// users know it to. `others`: weight, bias and running statistics, or undefined.
bool is_ordinary(const at::Tensor& input, std::initializer_list<at::Tensor> others, const World& world);

/// Weights of another type than the running statistics, as those of a model that was sharded in bf16, are taken in the
/// statistics' type: LibTorch has no such mixture. Whoever needs that calls this once, or a linker leaves it out.
void link_watched_batch_norm();

}  // namespace zero::nn
