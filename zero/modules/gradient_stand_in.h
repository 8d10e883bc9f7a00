#pragma once
// GradientStandIn: the tensor in parameter.grad() of a sharded model. The real gradients are in the model's shards.
#include <ATen/core/Tensor.h>

namespace zero {

/// Returns a tensor with the parameter's shape and type but no values. Using the tensor throws an InputError that names
/// the function of the sharded model to call instead. So norms over parameter.grad(), clip_grad_norm_() and LibTorch's
/// optimizers throw, instead of silently skipping a missing gradient.
at::Tensor gradient_stand_in(const at::Tensor& parameter);

}  // namespace zero
