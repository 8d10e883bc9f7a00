#include "zero/optim/kernels/optimizer_kernel.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/numbers/number_types.h"
#include "zero/optim/kernels/update_loop.h"

namespace zero {
namespace {

constexpr std::int64_t block_elements = std::int64_t{1} << 15;
// Smaller weights may still be in the caches when they are used.
constexpr std::int64_t stream_elements = std::int64_t{1} << 22;

template <class State>
void run(const OptimizerSpan& span, const StepFactors& factors, UpdateLoop<State> update) {
  ZERO_CHECK(update, text("an optimizer with states in ", c10::toString(span.state_type), " takes no gradients in ",
                          c10::toString(span.gradient_type), " with weights in ", c10::toString(span.weight_type)));
  at::parallel_for(0, (span.n + block_elements - 1) / block_elements, 1, [&](std::int64_t first, std::int64_t last) {
    const OptimizerSpan part = slice(span, first * block_elements, std::min(last * block_elements, span.n));
    UpdatePointers<State> at{static_cast<State*>(part.master), {}, part.gradient, part.weights};
    for (std::size_t s = 0; s < part.states.size(); ++s) at.states[s] = static_cast<State*>(part.states[s]);
    update(at, factors, part.n, span.n >= stream_elements);
  });
}

}  // namespace

void run_update(const OptimizerSpan& span, const StepFactors& factors, ChooseLoops choose) {
  ZERO_CHECK(factors.step >= 1, "steps are counted from 1");
  ZERO_CHECK(span.state_type == c10::kFloat || span.state_type == c10::kDouble, "states are fp32 or fp64");
  const auto weights = span.weights ? std::optional(number_of(span.weight_type)) : std::nullopt;
  const UpdateLoops loops = choose(number_of(span.gradient_type), weights);
  if (span.state_type == c10::kDouble) return run<double>(span, factors, loops.fp64);
  run<float>(span, factors, loops.fp32);
}

OptimizerSpan slice(const OptimizerSpan& span, std::int64_t begin, std::int64_t end) {
  const auto moved = [begin](auto* pointer, c10::ScalarType type) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(pointer)>>, const char, char>;
    return static_cast<Byte*>(pointer) + begin * static_cast<std::int64_t>(c10::elementSize(type));
  };
  OptimizerSpan part = span;
  part.master = moved(span.master, span.state_type);
  for (void*& state : part.states)
    if (state) state = moved(state, span.state_type);
  part.gradient = moved(span.gradient, span.gradient_type);
  if (span.weights) part.weights = moved(span.weights, span.weight_type);
  part.n = end - begin;
  return part;
}

}  // namespace zero
