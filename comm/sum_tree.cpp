#include "comm/sum_tree.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/numbers/number_types.h"
#include "base/simd/targets.h"

#include "base/simd/lanes.inl"

namespace zero {
namespace {

constexpr std::int64_t block = 2048;  // elements of a partial sum: one level of the tree fits in the L1 cache

/// fp64 to fp32 with rounding to odd: a second rounding, to fewer bits, then equals a single one.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const double size = value < 0 ? -value : value;
  const float nearest_size = std::bit_cast<float>(bits & 0x7fffffffu);
  if (static_cast<double>(nearest_size) > size) --bits;
  return std::bit_cast<float>(bits | 1u);
}

float narrow(float value) { return value; }
float narrow(double value) { return round_to_odd(value); }

/// One element, converted to the type of sums.
template <class Sum, class In>
Sum widened(In value) {
  if constexpr (std::is_arithmetic_v<In>)
    return static_cast<Sum>(value);
  else
    return to_float(value);
}

template <class Out, class Sum>
Out narrowed(Sum value) {
  if constexpr (std::is_arithmetic_v<Out>)
    return static_cast<Out>(value);
  else
    return rounded<Out>(narrow(value));
}

namespace hn = hwy::HWY_NAMESPACE;
namespace lanes = simd::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

/// gcc leaves plain loops over 16-bit numbers and sums of unknown length as they are at -O2.
template <class T, class Sum>
constexpr bool by_lanes = std::is_same_v<Sum, float> && (std::is_same_v<T, float> || !std::is_arithmetic_v<T>);

/// Calls f(i) for each whole vector of the n elements. Returns where the remaining elements start.
template <class F>
std::int64_t for_vectors(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + lanes::lanes_of<Floats> <= n; i += lanes::lanes_of<Floats>) f(i);
  return i;
}

template <class In, class Sum>
void load(const In* in, Sum* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (by_lanes<In, Sum>)
    i = for_vectors(n, [&](std::int64_t at) { lanes::store(Floats(), lanes::load(Floats(), in + at), out + at); });
  for (; i < n; ++i) out[i] = widened<Sum>(in[i]);
}

template <class In, class Sum>
void load_add(const In* in, Sum* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (by_lanes<In, Sum>)
    i = for_vectors(n, [&](std::int64_t at) {
      const auto sum = hn::Add(lanes::load(Floats(), out + at), lanes::load(Floats(), in + at));
      lanes::store(Floats(), sum, out + at);
    });
  for (; i < n; ++i) out[i] += widened<Sum>(in[i]);
}

template <class Sum, class Out>
void store(const Sum* in, Out* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (by_lanes<Out, Sum>)
    i = for_vectors(n, [&](std::int64_t at) { lanes::store(Floats(), lanes::load(Floats(), in + at), out + at); });
  for (; i < n; ++i) out[i] = narrowed<Out>(in[i]);
}

template <class Sum, class Out>
void store_add(const Sum* in, Out* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (by_lanes<Out, Sum>)
    i = for_vectors(n, [&](std::int64_t at) {
      const auto sum = hn::Add(lanes::load(Floats(), out + at), lanes::load(Floats(), in + at));
      lanes::store(Floats(), sum, out + at);
    });
  for (; i < n; ++i) out[i] = narrowed<Out>(widened<Sum>(out[i]) + in[i]);
}

/// Stores the sum of inputs [low, high) at elements [at, at + n) into level[0..n). Deeper levels of the tree use the
/// memory after it.
template <class In, class Sum>
void sum_range(std::span<const void* const> inputs, std::int64_t at, std::int64_t n, Sum* level) {
  const auto element = [&](std::size_t i) { return static_cast<const In*>(inputs[i]) + at; };
  load(element(0), level, n);
  if (inputs.size() == 1) return;
  if (inputs.size() == 2) return load_add(element(1), level, n);
  const std::size_t half = std::bit_ceil(inputs.size()) / 2;
  sum_range<In>(inputs.first(half), at, n, level);
  if (inputs.size() - half == 1) return load_add(element(half), level, n);
  Sum* right = level + block;
  sum_range<In>(inputs.subspan(half), at, n, right);
  load_add(right, level, n);
}

/// Two inputs need no partial sums in memory. Elementwise, so the output may alias an input.
template <bool accumulate, class Sum, class In, class Out>
void sum_two(const In* a, const In* b, Out* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (by_lanes<In, Sum> && by_lanes<Out, Sum>)
    i = for_vectors(n, [&](std::int64_t at) {
      auto sum = hn::Add(lanes::load(Floats(), a + at), lanes::load(Floats(), b + at));
      if constexpr (accumulate) sum = hn::Add(lanes::load(Floats(), out + at), sum);
      lanes::store(Floats(), sum, out + at);
    });
  for (; i < n; ++i) {
    Sum sum = widened<Sum>(a[i]) + widened<Sum>(b[i]);
    if constexpr (accumulate) sum = widened<Sum>(out[i]) + sum;
    out[i] = narrowed<Out>(sum);
  }
}

template <class In, class Sum, class Out>
void sum_typed(const SumInputs& inputs, const SumOutput& output, std::int64_t numel) {
  Out* out = static_cast<Out*>(output.pointer);
  if (inputs.pointers.size() == 2) {
    const In *a = static_cast<const In*>(inputs.pointers[0]), *b = static_cast<const In*>(inputs.pointers[1]);
    return output.accumulate ? sum_two<true, Sum>(a, b, out, numel) : sum_two<false, Sum>(a, b, out, numel);
  }
  alignas(64) std::array<Sum, 3 * block> few;  // enough for 8 inputs
  std::vector<Sum> many;
  const std::size_t depth = std::bit_width(inputs.pointers.size()) + 1;
  if (depth > 3) many.resize(depth * block);
  Sum* level = depth > 3 ? many.data() : few.data();
  for (std::int64_t at = 0; at < numel; at += block) {
    const std::int64_t n = std::min(block, numel - at);
    sum_range<In>(inputs.pointers, at, n, level);
    output.accumulate ? store_add(level, out + at, n) : store(level, out + at, n);
  }
}

}  // namespace

void sum_tree(const SumInputs& inputs, const SumOutput& output, std::int64_t numel, at::ScalarType sum_type) {
  ZERO_CHECK(!inputs.pointers.empty(), "a sum of nothing");
  if (inputs.type == at::kInt || inputs.type == at::kLong) {
    ZERO_CHECK(output.type == inputs.type, "integers are summed in their own type");
    if (inputs.type == at::kInt) return sum_typed<std::int32_t, std::int32_t, std::int32_t>(inputs, output, numel);
    return sum_typed<std::int64_t, std::int64_t, std::int64_t>(inputs, output, numel);
  }
  ZERO_CHECK(sum_type == at::kFloat || sum_type == at::kDouble, "partial sums are fp32 or fp64");
  with_float_type(number_of(inputs.type), [&](auto in) {
    with_float_type(number_of(output.type), [&](auto out) {
      if (sum_type == at::kFloat)
        sum_typed<decltype(in), float, decltype(out)>(inputs, output, numel);
      else
        sum_typed<decltype(in), double, decltype(out)>(inputs, output, numel);
    });
  });
}

}  // namespace zero
