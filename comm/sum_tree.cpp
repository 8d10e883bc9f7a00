#include "comm/sum_tree.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace zero {
namespace {

constexpr std::int64_t block = 2048;  // elements of a partial sum: one level of the tree stays in the L1 cache

// Bit patterns, so that the loops below are integer SIMD.
struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

/// fp64 to fp32 rounding to odd: rounding the result once more, to fewer bits, is then as good as rounding once.
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const double size = value < 0 ? -value : value;
  const float nearest_size = std::bit_cast<float>(bits & 0x7fffffffu);
  if (static_cast<double>(nearest_size) > size) --bits;
  return std::bit_cast<float>(bits | 1u);
}

inline float narrow(float value) { return value; }
inline float narrow(double value) { return round_to_odd(value); }

inline float widen(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
inline float widen(Fp16 value) { return _cvtsh_ss(value.bits); }
template <class T>
inline T widen(T value) {
  return value;
}

template <class Out, class Sum>
inline Out rounded(Sum value) {
  if constexpr (std::is_same_v<Out, Bf16>) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(narrow(value));
    const std::uint32_t nearest_even = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : nearest_even)};
  } else if constexpr (std::is_same_v<Out, Fp16>) {
    return {static_cast<std::uint16_t>(_cvtss_sh(narrow(value), _MM_FROUND_TO_NEAREST_INT))};
  } else {
    return static_cast<Out>(value);
  }
}

template <class In, class Sum>
void load(const In* in, Sum* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<In, Fp16> && std::is_same_v<Sum, float>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < n; ++i) out[i] = static_cast<Sum>(widen(in[i]));
}

template <class In, class Sum>
void load_add(const In* in, Sum* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<In, Fp16> && std::is_same_v<Sum, float>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(out + i,
                       _mm256_add_ps(_mm256_loadu_ps(out + i),
                                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)))));
  for (; i < n; ++i) out[i] += static_cast<Sum>(widen(in[i]));
}

template <class Sum, class Out>
void store(const Sum* in, Out* out, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<Out, Fp16> && std::is_same_v<Sum, float>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) out[i] = rounded<Out>(in[i]);
}

template <class Sum, class Out>
void store_add(const Sum* in, Out* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = rounded<Out>(static_cast<Sum>(widen(out[i])) + in[i]);
}

/// The sum of inputs [low, high) at elements [at, at + n), into level[0..n); deeper levels of the tree take the memory
/// behind.
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
  for (std::int64_t i = 0; i < n; ++i) level[i] += right[i];
}

/// Two inputs need no partial sums in memory. Elementwise, so the output may be one of the inputs.
template <class T>
void sum_two(const T* a, const T* b, T* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

template <class In, class Sum, class Out>
void sum_typed(const SumInputs& inputs, const SumOutput& output, std::int64_t numel) {
  Out* out = static_cast<Out*>(output.pointer);
  if constexpr (std::is_same_v<In, Sum> && std::is_same_v<Sum, Out>)
    if (inputs.pointers.size() == 2 && !output.accumulate)
      return sum_two(static_cast<const In*>(inputs.pointers[0]), static_cast<const In*>(inputs.pointers[1]), out,
                     numel);
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

template <class Function>
void with_float_type(at::ScalarType type, Function function) {
  switch (type) {
    case at::kFloat:
      return function(float{});
    case at::kDouble:
      return function(double{});
    case at::kBFloat16:
      return function(Bf16{});
    case at::kHalf:
      return function(Fp16{});
    default:
      ZERO_CHECK(false, std::string("no sums of ") + c10::toString(type));
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
  with_float_type(inputs.type, [&](auto in) {
    with_float_type(output.type, [&](auto out) {
      if (sum_type == at::kFloat)
        sum_typed<decltype(in), float, decltype(out)>(inputs, output, numel);
      else
        sum_typed<decltype(in), double, decltype(out)>(inputs, output, numel);
    });
  });
}

}  // namespace zero
