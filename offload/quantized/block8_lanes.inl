// Converts blocks of 8-bit codes to vectors and back, bit for bit as Block8Map's codes() and nearest() do. For kernels
// (base/simd/targets.h); included once per target, so the guard toggles.
#if defined(ZERO_OFFLOAD_QUANTIZED_BLOCK8_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_OFFLOAD_QUANTIZED_BLOCK8_LANES_INL
#undef ZERO_OFFLOAD_QUANTIZED_BLOCK8_LANES_INL
#else
#define ZERO_OFFLOAD_QUANTIZED_BLOCK8_LANES_INL
#endif

#include <algorithm>
#include <array>

#include "base/simd/lanes.inl"
#include "offload/quantized/block8.h"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Block8Values = std::array<float, block8>;

/// Looks up entry i of a table of 16 numbers, or of 8 for vectors of eight.
template <std::size_t numbers, class T, class I>
HWY_INLINE auto look_up(const std::array<T, 16>& table, I i) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<std::int32_t> whole;
  if constexpr (hn::MaxLanes(d) < 8) {
    return hn::GatherIndex(d, table.data(), i);
  } else if constexpr (hn::MaxLanes(d) >= numbers) {
    return hn::TableLookupLanes(hn::LoadU(d, table.data()), hn::IndicesFromVec(d, i));
  } else {
    const auto index = hn::IndicesFromVec(d, hn::And(i, hn::Set(whole, 7)));
    const auto upper = hn::RebindMask(d, hn::Gt(i, hn::Set(whole, 7)));
    return hn::IfThenElse(upper, hn::TableLookupLanes(hn::LoadU(d, table.data() + 8), index),
                          hn::TableLookupLanes(hn::LoadU(d, table.data()), index));
  }
}

template <bool is_signed>
class Block8Lanes {
  using D = hn::ScalableTag<float>;
  using I = hn::RebindToSigned<D>;
  using U = hn::RebindToUnsigned<D>;
  using Vec = hn::Vec<D>;
  static constexpr std::int64_t lanes = simd::HWY_NAMESPACE::lanes_of<D>;

 public:
  HWY_INLINE explicit Block8Lanes(const Block8Map& map) : map_(map), search_(map.search()) {}

  HWY_INLINE void decode(const std::uint8_t* codes, float scale, Block8Values& values) const {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    for (std::int64_t i = 0; i < block8; i += 32) decode_32(codes + i, _mm512_set1_ps(scale), values.data() + i);
#else
    const float* table = map_.codes().data();
#pragma GCC unroll 8
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = table[codes[i]] * scale;
#endif
  }

  /// The scale is `largest`, the largest absolute value. NaN gets the lowest code.
  HWY_INLINE void encode(const Block8Values& values, float largest, std::uint8_t* codes) const {
    const D d;
    const float inverse = largest > 0 ? 1 / largest : 0;
    for (std::int64_t i = 0; i < block8; i += 4 * lanes) {
      Vec x[4];
      each([&](int q) { x[q] = hn::Mul(hn::LoadU(d, values.data() + i + q * lanes), hn::Set(d, inverse)); });
      if (nearest(x, codes + i)) continue;
      for (std::int64_t k = i; k < i + 4 * lanes; ++k)
        codes[k] = map_.nearest(std::min(1.0F, std::max(-1.0F, values[std::size_t(k)] * inverse)));
    }
  }

 private:
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  /// Looks up 256 numbers of 16 bits by `codes`; 64 of them lie in two registers. Highway 1.0 lacks the instruction.
  static HWY_INLINE __m512i chosen(const std::array<std::uint16_t, 256>& table, __m512i codes) {
    const auto of_64 = [&](std::size_t begin) {
      const auto *first = table.data() + begin, *second = first + 32;
      return _mm512_permutex2var_epi16(_mm512_load_si512(first), codes, _mm512_load_si512(second));
    };
    const __mmask32 bit_6 = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(64)),
                    bit_7 = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(128));
    const __m512i lower = _mm512_mask_mov_epi16(of_64(0), bit_6, of_64(64)),
                  upper = _mm512_mask_mov_epi16(of_64(128), bit_6, of_64(192));
    return _mm512_mask_mov_epi16(lower, bit_7, upper);
  }
  HWY_INLINE void decode_32(const std::uint8_t* codes, __m512 scale, float* values) const {
    const __m256i given = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    // Unpacking picks four of every eight numbers. In this order they come out consecutively.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i wide = _mm512_cvtepu8_epi16(_mm256_permutevar8x32_epi32(given, order)),
                  low = chosen(map_.halves()[0], wide), high = chosen(map_.halves()[1], wide);
    _mm512_storeu_ps(values, _mm512_mul_ps(_mm512_castsi512_ps(_mm512_unpacklo_epi16(low, high)), scale));
    _mm512_storeu_ps(values + 16, _mm512_mul_ps(_mm512_castsi512_ps(_mm512_unpackhi_epi16(low, high)), scale));
  }
#endif

  /// Four vectors are interleaved, because each step depends on the previous one.
  template <class F>
  static HWY_INLINE void each(const F& f) {
    f(0), f(1), f(2), f(3);
  }

  /// True if all codes are decided.
  HWY_INLINE bool nearest(Vec (&x)[4], std::uint8_t* codes) const {
    const D d;
    const I whole;
    Vec size[4], line[4], count[4];
    hn::Vec<I> bin[4], low[4], power[4];
    each([&](int q) { size[q] = x[q]; });
    if constexpr (is_signed) {
      each([&](int q) { x[q] = hn::Max(x[q], hn::Set(d, map_.codes().front())); });  // Max returns its other argument
                                                                                     // for a NaN
      // A value midway between two codes is rounded by its sign: a negative value counts as slightly larger in
      // magnitude.
      each([&](int q) {
        size[q] =
            hn::BitCast(d, hn::Sub(hn::BitCast(whole, hn::Abs(x[q])), hn::BroadcastSignBit(hn::BitCast(whole, x[q]))));
      });
    }
    each([&](int q) { size[q] = hn::Max(size[q], hn::Set(d, Block8Search::smallest)); });
    each([&](int q) { bin[q] = hn::And(hn::ShiftRight<24>(hn::BitCast(whole, size[q])), hn::Set(whole, 15)); });
    each([&](int q) { low[q] = look_up<16>(search_.power, bin[q]); });
    each([&](int q) {
      const auto above = hn::RebindMask(whole, hn::Gt(size[q], look_up<16>(search_.border, bin[q])));
      power[q] = hn::IfThenElse(above, hn::Add(low[q], hn::Set(whole, 1)), low[q]);
    });
    each([&](int q) {
      line[q] = hn::MulAdd(size[q], look_up<8>(search_.slope, power[q]), look_up<8>(search_.offset, power[q]));
    });
    each([&](int q) { line[q] = hn::Min(line[q], look_up<8>(search_.highest, power[q])); });
    // Adding 1.5 * 2^23 rounds to an integer.
    const auto far = hn::Set(d, 0x1.8p23F);
    each([&](int q) { count[q] = hn::Sub(hn::Add(line[q], far), far); });
    each([&](int q) { line[q] = hn::Sub(line[q], count[q]); });
    if constexpr (is_signed) each([&](int q) { count[q] = hn::Add(hn::CopySign(count[q], x[q]), hn::Set(d, 127)); });
    store(count, codes);
    const auto rest = hn::Max(hn::Max(line[0], line[1]), hn::Max(line[2], line[3]));
    return hn::AllFalse(d, hn::Gt(rest, hn::Set(d, 0.5F - 2 * Block8Search::slack)));
  }

  static HWY_INLINE void store(const Vec (&count)[4], std::uint8_t* codes) {
    // Packs the numbers into bytes: first within a lane, then across four lanes, then across the vector.
    const D d;
    const U words;
    const hn::Repartition<std::uint8_t, D> bytes;
    const auto far = hn::Set(d, 0x1p23F);
    const auto raised = [&](int q) { return hn::BitCast(words, hn::Add(count[q], far)); };
    const auto sum = hn::Add(hn::Add(raised(0), hn::ShiftLeft<8>(raised(1))),
                             hn::Add(hn::ShiftLeft<16>(raised(2)), hn::ShiftLeft<24>(raised(3))));
    const auto packed = hn::BitCast(bytes, hn::Sub(sum, hn::Set(words, 0x4B000000)));
    alignas(16) static constexpr std::uint8_t turned[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    const auto fours = hn::BitCast(words, hn::TableLookupBytes(packed, hn::LoadDup128(bytes, turned)));
    alignas(64) std::int32_t order[lanes];
    for (std::int64_t k = 0; k < lanes; ++k) order[k] = std::int32_t(k % (lanes / 4) * 4 + k / (lanes / 4));
    hn::StoreU(hn::BitCast(bytes, hn::TableLookupLanes(fours, hn::SetTableIndices(words, order))), bytes, codes);
  }

  const Block8Map& map_;
  const Block8Search& search_;
};

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
