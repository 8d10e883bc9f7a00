#include "offload/kernels/adamw_kernel.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/numbers/number_types.h"
#include "offload/kernels/adamw_lanes.h"

namespace zero {
namespace {

constexpr std::int64_t block_elements = std::int64_t{1} << 15;
constexpr std::int64_t stream_elements = std::int64_t{1}
                                         << 22;  // smaller weights may still be in the caches when they are used

template <class State>
AdamWConstants<State> constants_of(const AdamWFactors& f) {
  const auto step = static_cast<double>(f.step);
  const double bias1 = 1 - std::pow(f.beta1, step), bias2 = 1 - std::pow(f.beta2, step);
  return {static_cast<State>(f.gradient_scale),     static_cast<State>(1 - f.lr * f.weight_decay),
          static_cast<State>(1 - f.beta1),          static_cast<State>(f.beta2),
          static_cast<State>(1 - f.beta2),          static_cast<State>(f.lr / bias1),
          static_cast<State>(1 / std::sqrt(bias2)), static_cast<State>(f.eps)};
}

template <class State>
void run(const AdamWSpan& span, const AdamWFactors& factors) {
  const auto weight_type = span.weights ? std::optional(number_of(span.weight_type)) : std::nullopt;
  const AdamWLoop<State> update = adamw_loop<State>(number_of(span.gradient_type), weight_type);
  ZERO_CHECK(update, text("AdamW with states in ", c10::toString(span.state_type), " takes no gradients in ",
                          c10::toString(span.gradient_type), " with weights in ", c10::toString(span.weight_type)));
  const AdamWConstants<State> constants = constants_of<State>(factors);
  const auto gradient_bytes = static_cast<std::int64_t>(c10::elementSize(span.gradient_type));
  const auto weight_bytes = static_cast<std::int64_t>(c10::elementSize(span.weight_type));
  at::parallel_for(0, (span.n + block_elements - 1) / block_elements, 1, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * block_elements, end = std::min(last * block_elements, span.n);
    const AdamWPointers<State> at{static_cast<State*>(span.master) + begin, static_cast<State*>(span.m) + begin,
                                  static_cast<State*>(span.v) + begin,
                                  static_cast<const char*>(span.gradient) + begin * gradient_bytes,
                                  span.weights ? static_cast<char*>(span.weights) + begin * weight_bytes : nullptr};
    update(at, constants, end - begin, span.n >= stream_elements);
  });
}

}  // namespace

void adamw_update(const AdamWSpan& span, const AdamWFactors& factors) {
  ZERO_CHECK(factors.step >= 1, "AdamW steps are counted from 1");
  if (span.state_type == c10::kDouble) return run<double>(span, factors);
  ZERO_CHECK(span.state_type == c10::kFloat, "AdamW states are fp32 or fp64");
  run<float>(span, factors);
}

AdamWSpan slice(const AdamWSpan& span, std::int64_t begin, std::int64_t end) {
  const auto moved = [begin](auto* pointer, c10::ScalarType type) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(pointer)>>, const char, char>;
    return static_cast<Byte*>(pointer) + begin * static_cast<std::int64_t>(c10::elementSize(type));
  };
  AdamWSpan part = span;
  part.master = moved(span.master, span.state_type);
  part.m = moved(span.m, span.state_type);
  part.v = moved(span.v, span.state_type);
  part.gradient = moved(span.gradient, span.gradient_type);
  if (span.weights) part.weights = moved(span.weights, span.weight_type);
  part.n = end - begin;
  return part;
}

void adamw_update(const AdamWSpan& span, const AdamWFactors& factors, const std::vector<DecayRange>& ranges,
                  std::int64_t offset) {
  if (ranges.empty()) return adamw_update(span, factors);
  std::int64_t done = offset;
  for (const DecayRange& range : ranges) {
    const std::int64_t begin = std::max(range.begin, offset), end = std::min(range.end, offset + span.n);
    if (begin >= end) continue;
    ZERO_CHECK(begin == done, text("decay ranges leave out elements ", done, " to ", begin));
    AdamWFactors of_range = factors;
    if (!range.decays) of_range.weight_decay = 0;
    of_range.lr *= range.lr_scale;
    adamw_update(slice(span, begin - offset, end - offset), of_range);
    done = end;
  }
  ZERO_CHECK(done == offset + span.n, text("decay ranges end at ", done, ", the shard's part at ", offset + span.n));
}

}  // namespace zero
