#pragma once
// GradientStandIn: the tensor in parameter.grad() of a sharded model, whose gradients are elsewhere.
#include <ATen/core/Tensor.h>

namespace zero {

/// A tensor of the parameter's shape and type without values: an operation that uses it throws InputError that names
/// what the model has in its place. So do norms over parameter.grad(), clip_grad_norm_() and LibTorch's optimizers,
/// which would find nothing and say nothing where there is no gradient.
at::Tensor gradient_stand_in(const at::Tensor& parameter);

}  // namespace zero
