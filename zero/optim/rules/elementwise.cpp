#include "zero/optim/rules/elementwise.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

// Smaller weights may still be in the caches when they are used.
constexpr std::int64_t stream_elements = std::int64_t{1} << 22;

}  // namespace

std::vector<StateSpec> ElementwiseOptimizer::states(at::ScalarType master) const {
  std::vector<StateSpec> specs;
  for (const std::string& name : state_names()) specs.push_back({name, master, 1});
  return specs;
}

void ElementwiseOptimizer::update(const UpdateSpan& span, const UpdateContext& context) const {
  ZERO_CHECK(!span.weights.defined() || span.weights.is_contiguous(), "spans are contiguous");
  if (!span.master.is_cpu()) return update_composed(span, context);
  ZERO_CHECK(context.step >= 1, "steps are counted from 1");
  const UpdateLoop update_part = loop(span);
  ZERO_CHECK(update_part, text(name(), " with states in ", span.master.scalar_type(), " takes no gradients in ",
                               span.gradient.scalar_type(), " with weights in ",
                               (span.weights.defined() ? span.weights : span.master).scalar_type()));
  const std::int64_t n = span.master.numel();
  at::parallel_for(0, (n + update_grain - 1) / update_grain, 1, [&](std::int64_t first, std::int64_t last) {
    update_part(span, context, first * update_grain, std::min(last * update_grain, n), n >= stream_elements);
  });
}

}  // namespace zero
