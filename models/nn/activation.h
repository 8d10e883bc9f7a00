#pragma once
// The activation between the two products of an MLP. It applies to every element. If gated, it applies to one half of a
// row, which then multiplies the other half (GLU variants, Shazeer 2020). Results are computed in fp32 (fp64 for fp64)
// and rounded once.
#include <ATen/core/Tensor.h>

#include "models/model_config.h"

namespace zero {

struct ActivationKind {
  Activation function = Activation::silu;
  bool gated = false;
};

/// x is [rows, inner] or, if gated, [rows, 2 inner] with the gate first. Returns [rows, inner]. Autograd does not
/// record it.
at::Tensor activate(const at::Tensor& x, const ActivationKind& kind);

/// The gradient of x for dy [rows, inner].
at::Tensor activate_backward(const at::Tensor& dy, const at::Tensor& x, const ActivationKind& kind);

}  // namespace zero
