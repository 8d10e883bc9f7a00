#pragma once
// Sixteen floats in a register; see lanes_scalar.h for the meaning. For files compiled with AVX-512 F, BW, DQ and VL.
#include <immintrin.h>

#include "offload/kernels/lanes_scalar.h"

namespace zero::kernels {
namespace {

struct Lanes16 {
  using State = float;
  static constexpr int width = 16;
  static constexpr Number state_number = Number::f32;
  __m512 x;

  static Lanes16 broadcast(float value) { return {_mm512_set1_ps(value)}; }

  template <Number number>
  static Lanes16 load(const void* from, std::int64_t i) {
    if constexpr (number == Number::f32) return {_mm512_loadu_ps(static_cast<const float*>(from) + i)};
    const __m256i raw =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const std::uint16_t*>(from) + i));
    if constexpr (number == Number::f16)
      return {_mm512_cvtph_ps(raw)};
    else
      return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16))};
  }

  /// Integer rounding, since vcvtneps2bf16 would flush denormals.
  static __m256i to_bfloat(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
    const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, is_nan, quiet));
  }

  template <Number number>
  static void store(void* to, std::int64_t i, Lanes16 value) {
    if constexpr (number == Number::f32) {
      _mm512_storeu_ps(static_cast<float*>(to) + i, value.x);
    } else {
      const __m256i half =
          number == Number::f16 ? _mm512_cvtps_ph(value.x, _MM_FROUND_TO_NEAREST_INT) : to_bfloat(value.x);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(static_cast<std::uint16_t*>(to) + i), half);
    }
  }

  template <Number number>
  static void store_past_cache(void* to, std::int64_t i, Lanes16 value) {
    if constexpr (number == Number::f32) {
      _mm512_stream_ps(static_cast<float*>(to) + i, value.x);
    } else {
      const __m256i half =
          number == Number::f16 ? _mm512_cvtps_ph(value.x, _MM_FROUND_TO_NEAREST_INT) : to_bfloat(value.x);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(static_cast<std::uint16_t*>(to) + i), half);
    }
  }
};

inline Lanes16 mul(Lanes16 a, Lanes16 b) { return {_mm512_mul_ps(a.x, b.x)}; }
inline Lanes16 sub(Lanes16 a, Lanes16 b) { return {_mm512_sub_ps(a.x, b.x)}; }
inline Lanes16 add(Lanes16 a, Lanes16 b) { return {_mm512_add_ps(a.x, b.x)}; }
inline Lanes16 div(Lanes16 a, Lanes16 b) { return {_mm512_div_ps(a.x, b.x)}; }
inline Lanes16 sqrt(Lanes16 a) { return {_mm512_sqrt_ps(a.x)}; }
inline Lanes16 fma(Lanes16 a, Lanes16 b, Lanes16 c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }

}  // namespace
}  // namespace zero::kernels
