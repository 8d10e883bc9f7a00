#pragma once
// Eight floats in a register; see lanes_scalar.h for the meaning. For files compiled with -mavx2 -mfma -mf16c.
#include <immintrin.h>

#include "offload/kernels/lanes_scalar.h"

namespace zero::kernels {
namespace {

struct Lanes8 {
  using State = float;
  static constexpr int width = 8;
  static constexpr Number state_number = Number::f32;
  __m256 x;

  static Lanes8 broadcast(float value) { return {_mm256_set1_ps(value)}; }

  template <Number number>
  static Lanes8 load(const void* from, std::int64_t i) {
    if constexpr (number == Number::f32) return {_mm256_loadu_ps(static_cast<const float*>(from) + i)};
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const std::uint16_t*>(from) + i));
    if constexpr (number == Number::f16)
      return {_mm256_cvtph_ps(raw)};
    else
      return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16))};
  }

  /// Integer rounding, since vcvtneps2bf16 would flush denormals.
  static __m128i to_bfloat(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i wide = _mm256_blendv_epi8(rounded, quiet, is_nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  }

  template <Number number>
  static void store(void* to, std::int64_t i, Lanes8 value) {
    if constexpr (number == Number::f32) {
      _mm256_storeu_ps(static_cast<float*>(to) + i, value.x);
    } else {
      const __m128i half =
          number == Number::f16 ? _mm256_cvtps_ph(value.x, _MM_FROUND_TO_NEAREST_INT) : to_bfloat(value.x);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<std::uint16_t*>(to) + i), half);
    }
  }

  template <Number number>
  static void store_past_cache(void* to, std::int64_t i, Lanes8 value) {
    if constexpr (number == Number::f32) {
      _mm256_stream_ps(static_cast<float*>(to) + i, value.x);
    } else {
      const __m128i half =
          number == Number::f16 ? _mm256_cvtps_ph(value.x, _MM_FROUND_TO_NEAREST_INT) : to_bfloat(value.x);
      _mm_stream_si128(reinterpret_cast<__m128i*>(static_cast<std::uint16_t*>(to) + i), half);
    }
  }
};

inline Lanes8 mul(Lanes8 a, Lanes8 b) { return {_mm256_mul_ps(a.x, b.x)}; }
inline Lanes8 sub(Lanes8 a, Lanes8 b) { return {_mm256_sub_ps(a.x, b.x)}; }
inline Lanes8 add(Lanes8 a, Lanes8 b) { return {_mm256_add_ps(a.x, b.x)}; }
inline Lanes8 div(Lanes8 a, Lanes8 b) { return {_mm256_div_ps(a.x, b.x)}; }
inline Lanes8 sqrt(Lanes8 a) { return {_mm256_sqrt_ps(a.x)}; }
inline Lanes8 fma(Lanes8 a, Lanes8 b, Lanes8 c) { return {_mm256_fmadd_ps(a.x, b.x, c.x)}; }

}  // namespace
}  // namespace zero::kernels
