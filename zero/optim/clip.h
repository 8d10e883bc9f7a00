#pragma once
// Clipping by the global L2 norm, as torch.nn.utils.clip_grad_norm_.
#include <algorithm>

namespace zero {

/// The factor for gradients: min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (off). For a norm that is not finite
/// it has no meaning: callers check the norm first.
inline double clip_factor(double norm, double max_norm) {
  if (max_norm <= 0) return 1.0;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace zero
