#pragma once
// AdamW, the rule of torch.optim.AdamW: decay, gradient scale, moments, update and cast of the weights in one pass.
#include "offload/kernels/optimizer_kernel.h"

namespace zero {

/// In the states' type:
///   g = gradient * gradient_scale;  p *= 1 - lr*weight_decay;  m += (1-beta1)(g-m);  v = beta2*v + (1-beta2)g*g;
///   p -= lr/(1-beta1^step) * m / (sqrt(v)/sqrt(1-beta2^step) + eps).
void adamw_update(const OptimizerSpan& span, const StepFactors& factors);

}  // namespace zero
