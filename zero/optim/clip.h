#pragma once
// Clipping by the global L2 norm, as torch.nn.utils.clip_grad_norm_.
#include <algorithm>

namespace zero {

/// What gradients are multiplied by: min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (off). A norm that is not
/// finite gives a factor that is not 1: callers look at NormPart::finite first.
inline double clip_factor(double norm, double max_norm) {
  if (max_norm <= 0) return 1.0;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace zero
