#pragma once
// GradientStandIn: the tensor in parameter.grad() of a sharded model, whose real gradients are in its shards.
#include <ATen/core/Tensor.h>

namespace zero {

/// A tensor with the parameter's shape and type but no values. Using it throws InputError that names the sharded
/// model's own call. This includes norms over parameter.grad(), clip_grad_norm_() and LibTorch's optimizers, which
/// would silently do nothing without a gradient.
at::Tensor gradient_stand_in(const at::Tensor& parameter);

}  // namespace zero
