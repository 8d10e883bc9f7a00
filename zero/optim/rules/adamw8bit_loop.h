#pragma once
// 8-bit AdamW's step: over host memory as one loop of vectors, for masters in fp32, and composed for any device.
#include <cmath>
#include <cstdint>

#include "zero/optim/kernels/update_span.h"

namespace zero {

/// A step's constants, for masters of type S.
template <class S>
struct AdamW8bitFactors {
  S keep, one_minus_beta1, beta2, one_minus_beta2, step_size, inverse_root_bias2, eps, gradient_scale;

  explicit AdamW8bitFactors(const StepFactors& f) {
    const auto step = static_cast<double>(f.step);
    keep = S(1 - f.lr * f.weight_decay);
    one_minus_beta1 = S(1 - f.beta1);
    beta2 = S(f.beta2);
    one_minus_beta2 = S(1 - f.beta2);
    step_size = S(f.lr / (1 - std::pow(f.beta1, step)));
    inverse_root_bias2 = S(1 / std::sqrt(1 - std::pow(f.beta2, step)));
    eps = S(f.eps);
    gradient_scale = S(f.gradient_scale);
  }
};

/// The loop of vectors for the types of a span with the states exp_avg_codes, exp_avg_sq_codes, exp_avg_scales and
/// exp_avg_sq_scales, whose first element begins a block; null: there is none. The same bits for any kind of processor
/// and number of threads.
UpdateLoop adamw8bit_loop(const UpdateSpan& span);

/// The same by LibTorch's operations, on any device. Leaves the weights beside the master as they are.
void composed_adamw8bit(const UpdateSpan& span, const StepFactors& factors);

}  // namespace zero
