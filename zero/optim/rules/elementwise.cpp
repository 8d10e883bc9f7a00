#include "zero/optim/rules/elementwise.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace zero {

std::vector<StateSpec> ElementwiseOptimizer::states(at::ScalarType master) const {
  std::vector<StateSpec> specs;
  for (const std::string& name : state_names()) specs.push_back({name, master, 1});
  return specs;
}

OptimizerSpan flat_span(const UpdateSpan& span) {
  ZERO_CHECK(!span.weights.defined() || span.weights.is_contiguous(), "spans are contiguous");
  OptimizerSpan flat{.master = span.master.data_ptr(),
                     .state_type = span.master.scalar_type(),
                     .gradient = span.gradient.const_data_ptr(),
                     .gradient_type = span.gradient.scalar_type(),
                     .weights = span.weights.defined() ? span.weights.data_ptr() : nullptr,
                     .weight_type = span.weights.defined() ? span.weights.scalar_type() : span.master.scalar_type(),
                     .n = span.master.numel()};
  for (std::size_t s = 0; s < span.states.size(); ++s) flat.states.at(s) = span.states[s].data_ptr();
  return flat;
}

void ElementwiseOptimizer::update(const UpdateSpan& span, const UpdateContext& context) const {
  if (span.master.is_cpu()) return run_update(flat_span(span), context.factors, loops());
  update_composed(span, context);
}

}  // namespace zero
