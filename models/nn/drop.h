#pragma once
// Drops elements of activations.
#include <ATen/core/Tensor.h>

#include "models/ops/dropout.h"

namespace zero {

/// Returns x [..., width] with some elements zeroed and the others times 1 / (1 - share), rounded once. Returns x if
/// the share is 0. Saves nothing for backward.
at::Tensor drop(const at::Tensor& x, const Dropout& dropout);

}  // namespace zero
