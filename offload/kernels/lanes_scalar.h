#pragma once
// The vector types that the host kernels are written over, beginning with the one-lane type that is their reference and
// does their rests. Each has: State, width, state_number, broadcast, load<Number>(from, i), store<Number>(to, i,
// value), store_past_cache, and the free functions mul, add, sub, div, sqrt, fma(a, b, c) = a*b + c rounded once.
//
// Files that include these have compile flags of their own: nothing here may be emitted as a shared inline function, or
// the linker could pick the AVX-512 copy for every caller. Hence the anonymous namespaces and next to no standard
// library.
#include <cstdint>
#include <cstring>

namespace zero::kernels {

/// The number types in memory.
enum class Number : std::uint8_t { f32, bf16, f16, f64, none };

namespace {

inline float float_from_half(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  std::uint32_t exponent = (h >> 10) & 0x1Fu, fraction = h & 0x3FFu;
  std::uint32_t bits = 0;
  if (exponent == 31) {
    bits = sign | 0x7F800000u | (fraction << 13) | (fraction ? 0x400000u : 0u);
  } else if (exponent != 0) {
    bits = sign | ((exponent + 112) << 23) | (fraction << 13);
  } else {  // zero or denormal: fraction * 2^-24, exact in float
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    std::memcpy(&bits, &value, 4);
    bits |= sign;
  }
  float f = 0;
  std::memcpy(&f, &bits, 4);
  return f;
}

/// To nearest, ties to even; NaN stays NaN; beyond 65504 rounds to infinity as vcvtps2ph does.
inline std::uint16_t half_from_float(float f) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &f, 4);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (magnitude <
      0x38800000u) {  // below the smallest normal: adding 0.5 leaves the fraction in units of 2^-24, rounded
    float value = 0;
    std::memcpy(&value, &magnitude, 4);
    value += 0.5f;
    std::uint32_t rounded = 0;
    std::memcpy(&rounded, &value, 4);
    return static_cast<std::uint16_t>(sign | (rounded - 0x3F000000u));
  }
  magnitude += 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

/// To nearest, ties to even; NaN stays a quiet NaN.
inline std::uint16_t bfloat_from_float(float f) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &f, 4);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float float_from_bfloat(std::uint16_t h) {
  const std::uint32_t bits = static_cast<std::uint32_t>(h) << 16;
  float f = 0;
  std::memcpy(&f, &bits, 4);
  return f;
}

template <class T>
struct Lane {
  using State = T;
  static constexpr int width = 1;
  static constexpr Number state_number = sizeof(T) == 4 ? Number::f32 : Number::f64;
  T x;

  static Lane broadcast(T value) { return {value}; }

  template <Number number>
  static Lane load(const void* from, std::int64_t i) {
    if constexpr (number == Number::f32)
      return {static_cast<T>(static_cast<const float*>(from)[i])};
    else if constexpr (number == Number::f64)
      return {static_cast<T>(static_cast<const double*>(from)[i])};
    else if constexpr (number == Number::bf16)
      return {static_cast<T>(float_from_bfloat(static_cast<const std::uint16_t*>(from)[i]))};
    else
      return {static_cast<T>(float_from_half(static_cast<const std::uint16_t*>(from)[i]))};
  }

  template <Number number>
  static void store(void* to, std::int64_t i, Lane value) {
    if constexpr (number == Number::f32)
      static_cast<float*>(to)[i] = static_cast<float>(value.x);
    else if constexpr (number == Number::f64)
      static_cast<double*>(to)[i] = static_cast<double>(value.x);
    else if constexpr (number == Number::bf16)
      static_cast<std::uint16_t*>(to)[i] = bfloat_from_float(static_cast<float>(value.x));
    else
      static_cast<std::uint16_t*>(to)[i] = half_from_float(static_cast<float>(value.x));
  }

  template <Number number>
  static void store_past_cache(void* to, std::int64_t i, Lane value) {
    store<number>(to, i, value);
  }
};

template <class T>
inline Lane<T> mul(Lane<T> a, Lane<T> b) {
  return {a.x * b.x};
}
template <class T>
inline Lane<T> sub(Lane<T> a, Lane<T> b) {
  return {a.x - b.x};
}
template <class T>
inline Lane<T> add(Lane<T> a, Lane<T> b) {
  return {a.x + b.x};
}
template <class T>
inline Lane<T> div(Lane<T> a, Lane<T> b) {
  return {a.x / b.x};
}
inline Lane<float> sqrt(Lane<float> a) { return {__builtin_sqrtf(a.x)}; }
inline Lane<double> sqrt(Lane<double> a) { return {__builtin_sqrt(a.x)}; }
inline Lane<float> fma(Lane<float> a, Lane<float> b, Lane<float> c) { return {__builtin_fmaf(a.x, b.x, c.x)}; }
inline Lane<double> fma(Lane<double> a, Lane<double> b, Lane<double> c) { return {__builtin_fma(a.x, b.x, c.x)}; }

}  // namespace
}  // namespace zero::kernels
