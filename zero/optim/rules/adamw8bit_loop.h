#pragma once
// The step of 8-bit AdamW. There is a vectorized loop over host memory for fp32 masters, and a version composed of
// LibTorch operations for any device.
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

/// Returns the vectorized loop for the types of a span, whose first element begins a block; null if there is none. The
/// span's states are exp_avg_codes, exp_avg_sq_codes, exp_avg_scales and exp_avg_sq_scales. Results are the same bit
/// for bit for any kind of processor and number of threads.
UpdateLoop adamw8bit_loop(const UpdateSpan& span);

/// Does the same with LibTorch's operations, on any device. Updates the master but not the weights next to it.
void composed_adamw8bit(const UpdateSpan& span, const StepFactors& factors);

}  // namespace zero
