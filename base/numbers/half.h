#pragma once
// The two 16-bit floating types as bit patterns, and their conversion one number at a time. base/simd/lanes.inl
// converts whole vectors, with the same bits as a result.
#include <bit>
#include <cstdint>

namespace zero {

struct Bf16 {
  std::uint16_t bits;
};
/// IEEE 754 binary16.
struct Fp16 {
  std::uint16_t bits;
};

constexpr float to_float(float x) { return x; }

constexpr float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

constexpr float to_float(Fp16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1Fu, fraction = x.bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13) | (fraction ? 0x400000u : 0u));
  if (exponent) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  // zero or denormal: fraction * 2^-24, exact in fp32
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
}

/// Converts x to T, rounding to nearest with ties to even. A NaN becomes a quiet NaN that keeps the upper bits of its
/// payload.
template <class T>
constexpr T rounded(float x) {
  return x;
}

template <>
constexpr Bf16 rounded<Bf16>(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

template <>
constexpr Fp16 rounded<Fp16>(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, size = bits & 0x7FFFFFFFu;
  const auto signed_half = [sign](std::uint32_t rest) { return Fp16{static_cast<std::uint16_t>(sign | rest)}; };
  if (size > 0x7F800000u) return signed_half(0x7E00u | ((size >> 13) & 0x3FFu));
  if (size >= 0x47800000u) return signed_half(0x7C00u);
  if (size < 0x38800000u) {  // below the smallest normal: adding 0.5 leaves the fraction in units of 2^-24, rounded
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return signed_half(std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u);
  }
  return signed_half((size + 0xFFFu + ((size >> 13) & 1u) - 0x38000000u) >> 13);
}

}  // namespace zero
