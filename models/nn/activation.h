#pragma once
// The activation between the two products of an MLP. It is a function of every number, or of one half of a row's
// numbers, which then multiplies the other (GLU variants, Shazeer 2020). Computed in fp32 (fp64 in fp64) and rounded
// once.
#include <ATen/core/Tensor.h>

#include "models/model_config.h"

namespace zero {

struct ActivationKind {
  Activation function = Activation::silu;
  bool gated = false;
};

/// x [rows, inner], or [rows, 2 inner] with the gate first if it is gated. Returns [rows, inner]. Without autograd.
at::Tensor activate(const at::Tensor& x, const ActivationKind& kind);

/// The gradient of x for dy [rows, inner].
at::Tensor activate_backward(const at::Tensor& dy, const at::Tensor& x, const ActivationKind& kind);

}  // namespace zero
