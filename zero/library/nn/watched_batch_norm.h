#pragma once
// Handles torch's batch_norm when its arguments are a sharded model's parameters or a converted norm's statistics.
#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "zero/library/include/zero/world.h"

namespace zero::nn {

/// Makes every batch_norm in training mode with this running mean compute its statistics over the world.
void synchronize(const at::Tensor& running_mean, const World& world);

/// Returns true if there is one process and all tensors have the input's type. LibTorch's batch norm then runs, with
/// its usual rounding. `others`: weight, bias and running statistics, or undefined.
bool is_ordinary(const at::Tensor& input, std::initializer_list<at::Tensor> others, const World& world);

/// Converts weights to the type of the running statistics if they differ, as in a model sharded in bf16. LibTorch does
/// not support mixed types. Callers that need this must call the function once, or the linker drops the file.
void link_watched_batch_norm();

}  // namespace zero::nn
