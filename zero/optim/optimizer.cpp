#include "zero/optim/optimizer.h"

#include <ATen/ATen.h>

namespace zero {

StepFactors step_factors(const OptimizerOptions& options, std::int64_t step, double lr, double gradient_scale) {
  StepFactors factors{options, gradient_scale, step};
  factors.lr = lr;
  return factors;
}

at::Tensor scaled_gradient(const UpdateSpan& span, const StepFactors& factors) {
  return span.gradient.to(span.master.scalar_type()).mul(factors.gradient_scale);
}

void write_weights(const UpdateSpan& span) {
  if (span.weights.defined()) span.weights.copy_(span.master);
}

}  // namespace zero
