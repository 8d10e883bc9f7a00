// Processes sixteen floats at a time: one vector of AVX-512, two of AVX2, four of NEON. Sums therefore have the same
// order everywhere. For files of kernels (base/simd/targets.h); included once per target, so the guard toggles.
#if defined(ZERO_BASE_SIMD_ROW16_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_BASE_SIMD_ROW16_INL
#undef ZERO_BASE_SIMD_ROW16_INL
#else
#define ZERO_BASE_SIMD_ROW16_INL
#endif

#include <algorithm>
#include <utility>

#include "base/simd/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace simd_here = simd::HWY_NAMESPACE;

constexpr std::int64_t width = 16;
using Floats = hn::CappedTag<float, width>;
constexpr std::int64_t part_width = simd_here::lanes_of<Floats>;
constexpr int parts = static_cast<int>(width / part_width);

struct V {
  hn::Vec<Floats> part[parts];
};

/// Applies f to the parts of its arguments.
template <class F, class... Vs>
HWY_INLINE V by_part(F f, const Vs&... v) {
  V out;
  for (int i = 0; i < parts; ++i) out.part[i] = f(v.part[i]...);
  return out;
}

// Write this after the parameters of a lambda. The lambda is compiled for the target and always inlined, since a call
// would reload constants.
#undef ZERO_LAMBDA
#define ZERO_LAMBDA HWY_ATTR __attribute__((always_inline))
#undef ZERO_BY_PART
#define ZERO_BY_PART(function, ...) by_part([](auto... x) ZERO_LAMBDA { return hn::function(x...); }, __VA_ARGS__)

/// Calls f(0) to f(n - 1) with constants.
template <int n, class F>
HWY_INLINE void repeat(F f) {
  [&]<int... i>(std::integer_sequence<int, i...>) ZERO_LAMBDA { (f(std::integral_constant<int, i>()), ...); }
  (std::make_integer_sequence<int, n>());
}

HWY_INLINE V splat(float x) {
  V out;
  for (auto& part : out.part) part = hn::Set(Floats(), x);
  return out;
}

HWY_INLINE V operator+(V a, V b) { return ZERO_BY_PART(Add, a, b); }
HWY_INLINE V operator-(V a, V b) { return ZERO_BY_PART(Sub, a, b); }
HWY_INLINE V operator*(V a, V b) { return ZERO_BY_PART(Mul, a, b); }
HWY_INLINE V operator/(V a, V b) { return ZERO_BY_PART(Div, a, b); }
HWY_INLINE V operator-(V a) { return ZERO_BY_PART(Neg, a); }
HWY_INLINE V operator+(V a, float b) { return a + splat(b); }
HWY_INLINE V operator-(V a, float b) { return a - splat(b); }
HWY_INLINE V operator*(V a, float b) { return a * splat(b); }
HWY_INLINE V operator+(float a, V b) { return splat(a) + b; }
HWY_INLINE V operator-(float a, V b) { return splat(a) - b; }
HWY_INLINE V operator/(float a, V b) { return splat(a) / b; }
HWY_INLINE V& operator+=(V& a, V b) { return a = a + b; }
/// a * b + c, a * b - c and c - a * b, each rounded once.
HWY_INLINE V multiply_add(V a, V b, V c) { return ZERO_BY_PART(MulAdd, a, b, c); }
HWY_INLINE V multiply_subtract(V a, V b, V c) { return ZERO_BY_PART(MulSub, a, b, c); }
HWY_INLINE V negative_multiply_add(V a, V b, V c) { return ZERO_BY_PART(NegMulAdd, a, b, c); }
/// Returns the larger of a and b in each lane, or b if one is NaN.
HWY_INLINE V larger(V a, V b) { return ZERO_BY_PART(Max, a, b); }
HWY_INLINE V smaller(V a, V b) { return ZERO_BY_PART(Min, a, b); }

/// The first `count` of 16 elements; the rest are zero. `count` is a constant at nearly every call.
template <class T>
HWY_INLINE V load(const T* from, std::int64_t count) {
  T rest[width];
  if (count < width) {
    std::fill(std::copy_n(from, count, rest), rest + width, T{});
    from = rest;
  }
  V out;
  for (int i = 0; i < parts; ++i) out.part[i] = simd_here::load(Floats(), from + i * part_width);
  return out;
}

template <class T>
HWY_INLINE void store(T* to, V v, std::int64_t count) {
  T rest[width];
  T* whole = count < width ? rest : to;
  for (int i = 0; i < parts; ++i) simd_here::store(Floats(), v.part[i], whole + i * part_width);
  if (count < width) std::copy_n(rest, count, to);
}

/// Calls f(index, count) for 16 elements at a time, with a constant count, and then for the rest.
template <class F>
HWY_INLINE void by_16(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) f(i, std::integral_constant<std::int64_t, width>());
  if (i < n) f(i, n - i);
}

HWY_INLINE float sum(V v) {
  float s[width];
  store(s, v, width);
  for (int step = 8; step; step /= 2)
    for (int i = 0; i < step; ++i) s[i] += s[i + step];
  return s[0];
}
HWY_INLINE float largest(V v) {
  float s[width];
  store(s, v, width);
  float m = s[0];
  for (int i = 1; i < width; ++i) m = s[i] > m ? s[i] : m;
  return m;
}

/// e^x within 2 units in the last place (the polynomial of Cephes' expf); below -87.3 it stays at e^-87.3, NaN stays
/// NaN.
HWY_INLINE V exponential(V x) {
  x = smaller(splat(88.0f), larger(splat(-87.3f), x));
  const V magic = splat(0x1.8p23f);
  const V shifted = multiply_add(x, splat(1.44269504088896341f), magic);  // the integer is in the lowest bits
  const V n = shifted - magic;
  V r = negative_multiply_add(n, splat(0.693359375f), x);
  r = multiply_add(n, splat(2.12194440e-4f), r);
  V p = splat(1.9875691500e-4f);
  for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = multiply_add(p, r, splat(c));
  p = multiply_add(p, r * r, r) + 1.0f;
  const V power = by_part(
      [](auto bits) ZERO_LAMBDA {
        const hn::RebindToSigned<Floats> words;
        const auto biased = hn::Add(hn::BitCast(words, bits), hn::Set(words, 127));
        return hn::BitCast(Floats(), hn::ShiftLeft<23>(biased));
      },
      shifted);
  return p * power;
}

}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
