// The codes and scales of blocks in a panel, one struct for each type (base/numbers/ggml_codes.h has the layouts). For
// files of kernels (base/simd/targets.h); included once per target, so the guard toggles.
//
// A vector has a lane for each row of the panel, or of a part of it. The halves of a block come first, then its other
// bytes in words of four (PanelLayout). Each struct has
//   rows            of 32 values in a block
//   groups          with a scale of their own in such a row: 1 or 2
//   above           what a code is above its value
//   most            the largest code
//   Type(block)     reads what the rows share
//   codes<r>(c)     the codes of row r, c[8], four values in a word
//   scale<r>(g)     of group g, and offset<r>(g), which is subtracted (`offsets` tells whether there are any)
#if defined(ZERO_MODELS_OPS_KERNELS_PANEL_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_MODELS_OPS_KERNELS_PANEL_CODES_INL
#undef ZERO_MODELS_OPS_KERNELS_PANEL_CODES_INL
#else
#define ZERO_MODELS_OPS_KERNELS_PANEL_CODES_INL
#endif

#include "base/numbers/ggml_codes.h"
#include "base/simd/row16.inl"
#include "models/ops/kernels/panel_layout.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;
using Signed = hn::RebindToSigned<Floats>;
using W = hn::Vec<Words>;  // a word of each row, or four codes of it
using F = hn::Vec<Floats>;

HWY_INLINE W all_words(std::uint32_t word) { return hn::Set(Words(), word); }
HWY_INLINE F to_floats(W small) { return hn::ConvertTo(Floats(), hn::BitCast(Signed(), small)); }

/// Bits [first, first + count) of each byte, moved to bit `to`.
template <int first, int count, int to = 0>
HWY_INLINE W byte_bits(W words) {
  const W mask = all_words(0x01010101u * (((1u << count) - 1) << to));
  if constexpr (to >= first)
    return hn::And(hn::ShiftLeft<to - first>(words), mask);
  else
    return hn::And(hn::ShiftRight<first - to>(words), mask);
}
/// Bits [first, first + count) of each word.
template <int first, int count>
HWY_INLINE W word_bits(W words) {
  return hn::And(hn::ShiftRight<first>(words), all_words((1u << count) - 1));
}

/// A block of a part of a panel's rows.
template <class Layout>
struct PanelBlock {
  static constexpr PanelLayout layout = panel_layout<Layout>;
  static constexpr int rows = Layout::values / 32;
  static constexpr bool offsets = false;

  HWY_INLINE PanelBlock(const std::uint8_t* block, int part) : block_(block), part_(part) {}
  HWY_INLINE W word(int i) const {
    return hn::LoadU(
        Words(), reinterpret_cast<const std::uint32_t*>(block_ + layout.halves * 32 + i * 64 + part_ * part_width * 4));
  }
  HWY_INLINE const std::uint8_t* halves(int i) const { return block_ + i * 32 + part_ * part_width * 2; }
  HWY_INLINE F half(int i) const {
    return hn::PromoteTo(
        Floats(), hn::LoadU(hn::Rebind<hwy::float16_t, Floats>(), reinterpret_cast<const hwy::float16_t*>(halves(i))));
  }

 private:
  const std::uint8_t* block_;
  int part_;
};

/// Blocks of 32 values with one scale.
template <class Layout, int above_value, int most_code = 2 * above_value - 1>
struct OneScale : PanelBlock<Layout> {
  static constexpr int groups = 1, above = above_value, most = most_code;
  HWY_INLINE OneScale(const std::uint8_t* block, int part) : PanelBlock<Layout>(block, part), d(this->half(0)) {}
  template <int>
  HWY_INLINE F scale(int) const {
    return d;
  }
  F d;
};
/// Blocks of 32 values with one scale and one minimum, which is added.
template <class Layout, int most_code>
struct ScaleAndMinimum : PanelBlock<Layout> {
  static constexpr int groups = 1, above = 0, most = most_code;
  static constexpr bool offsets = true;
  HWY_INLINE ScaleAndMinimum(const std::uint8_t* block, int part)
      : PanelBlock<Layout>(block, part), d(this->half(0)), m(hn::Neg(this->half(1))) {}
  template <int>
  HWY_INLINE F scale(int) const {
    return d;
  }
  template <int>
  HWY_INLINE F offset(int) const {
    return m;
  }
  F d, m;
};

/// Four words from `first` on hold the codes of a row: the first 16 in the low halves of bytes, the others above them.
template <class Block>
HWY_INLINE void nibbles(const Block& block, int first, W* c) {
  for (int j = 0; j < 4; ++j) {
    c[j] = byte_bits<0, 4>(block.word(first + j));
    c[4 + j] = byte_bits<4, 4>(block.word(first + j));
  }
}
/// The fifth bits of a row, from a word of 32 bits.
HWY_INLINE void add_fifth_bits(W bits, W* c) {
  const auto four = [&](auto shift) ZERO_LAMBDA {
    const W spread = hn::Mul(word_bits<shift.value, 4>(bits), all_words(0x00204081));
    return byte_bits<0, 1, 4>(spread);
  };
  repeat<8>([&](auto j) ZERO_LAMBDA { c[j] = hn::Or(c[j], four(std::integral_constant<int, 4 * j>())); });
}
/// Replaces codes by the values of IQ4 above -128.
HWY_INLINE void look_up_uneven(W* c) {
  alignas(16) static constexpr std::uint8_t values[]{1,   24,  45,  63,  79,  93,  106, 118,
                                                     129, 141, 153, 166, 181, 197, 217, 241};
  const hn::Repartition<std::uint8_t, Words> bytes;
  const auto table = hn::LoadDup128(bytes, values);
  for (int j = 0; j < 8; ++j) c[j] = hn::BitCast(Words(), hn::TableLookupBytes(table, hn::BitCast(bytes, c[j])));
}

template <class Layout>
struct PanelOf;

template <>
struct PanelOf<ggml::Q8_0> : OneScale<ggml::Q8_0, 128> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : OneScale(block, part) {}
  template <int>
  HWY_INLINE void codes(W* c) const {
    for (int j = 0; j < 8; ++j) c[j] = hn::Xor(word(j), all_words(0x80808080));
  }
};
template <>
struct PanelOf<ggml::Q4_0> : OneScale<ggml::Q4_0, 8> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : OneScale(block, part) {}
  template <int>
  HWY_INLINE void codes(W* c) const {
    nibbles(*this, 0, c);
  }
};
template <>
struct PanelOf<ggml::Q4_1> : ScaleAndMinimum<ggml::Q4_1, 15> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : ScaleAndMinimum(block, part) {}
  template <int>
  HWY_INLINE void codes(W* c) const {
    nibbles(*this, 0, c);
  }
};
template <>
struct PanelOf<ggml::Q5_0> : OneScale<ggml::Q5_0, 16> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : OneScale(block, part) {}
  template <int>
  HWY_INLINE void codes(W* c) const {
    nibbles(*this, 1, c);
    add_fifth_bits(word(0), c);
  }
};
template <>
struct PanelOf<ggml::Q5_1> : ScaleAndMinimum<ggml::Q5_1, 31> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : ScaleAndMinimum(block, part) {}
  template <int>
  HWY_INLINE void codes(W* c) const {
    nibbles(*this, 1, c);
    add_fifth_bits(word(0), c);
  }
};
template <>
struct PanelOf<ggml::IQ4_NL> : OneScale<ggml::IQ4_NL, 128> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : OneScale(block, part) {}
  template <int>
  HWY_INLINE void codes(W* c) const {
    nibbles(*this, 0, c);
    look_up_uneven(c);
  }
};

template <>
struct PanelOf<ggml::IQ4_XS> : PanelBlock<ggml::IQ4_XS> {
  static constexpr int groups = 1, above = 128, most = 255;
  HWY_INLINE PanelOf(const std::uint8_t* block, int part)
      : PanelBlock(block, part),
        d(half(0)),
        low(word(0)),
        high(hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<std::uint16_t, Words>(),
                                              reinterpret_cast<const std::uint16_t*>(halves(1))))) {}
  template <int r>
  HWY_INLINE void codes(W* c) const {
    nibbles(*this, 1 + 4 * r, c);
    look_up_uneven(c);
  }
  template <int r>
  HWY_INLINE F scale(int) const {
    const W code = hn::Or(word_bits<4 * r, 4>(low), hn::ShiftLeft<4>(word_bits<2 * r, 2>(high)));
    return hn::Mul(d, to_floats(hn::Sub(code, all_words(32))));
  }
  F d;
  W low, high;
};

/// Two bits of each code of row r: four rows share eight words.
template <int r, class Block>
HWY_INLINE void two_bits(const Block& block, int first, W* c) {
  for (int j = 0; j < 8; ++j) c[j] = byte_bits<r % 4 * 2, 2>(block.word(first + r / 4 * 8 + j));
}
/// Four bits of each code of row r: two rows share eight words.
template <int r, class Block>
HWY_INLINE void four_bits(const Block& block, int first, W* c) {
  for (int j = 0; j < 8; ++j) c[j] = byte_bits<r % 2 * 4, 4>(block.word(first + r / 2 * 8 + j));
}

template <>
struct PanelOf<ggml::Q2_K> : PanelBlock<ggml::Q2_K> {
  static constexpr int groups = 2, above = 0, most = 3;
  static constexpr bool offsets = true;
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : PanelBlock(block, part), d(half(0)), m(half(1)) {}
  template <int r>
  HWY_INLINE void codes(W* c) const {
    two_bits<r>(*this, 4, c);
  }
  template <int r>
  HWY_INLINE F scale(int g) const {
    return hn::Mul(d, to_floats(byte_of<0>(2 * r + g)));
  }
  template <int r>
  HWY_INLINE F offset(int g) const {
    return hn::Mul(m, to_floats(byte_of<4>(2 * r + g)));
  }
  /// Four bits of byte p of the scales.
  template <int first>
  HWY_INLINE W byte_of(int p) const {
    return hn::And(hn::ShiftRightSame(word(p / 4), p % 4 * 8 + first), all_words(15));
  }
  F d, m;
};

template <>
struct PanelOf<ggml::Q3_K> : PanelBlock<ggml::Q3_K> {
  static constexpr int groups = 2, above = 4, most = 7;
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : PanelBlock(block, part), d(half(0)) {}
  template <int r>
  HWY_INLINE void codes(W* c) const {
    two_bits<r>(*this, 8, c);
    for (int j = 0; j < 8; ++j) c[j] = hn::Or(c[j], byte_bits<r, 1, 2>(word(j)));
  }
  template <int r>
  HWY_INLINE F scale(int g) const {
    const int p = 2 * r + g;
    const W low = hn::And(hn::ShiftRightSame(word(24 + p % 8 / 4), p % 4 * 8 + p / 8 * 4), all_words(15)),
            high = hn::And(hn::ShiftRightSame(word(26), p % 4 * 8 + p / 4 * 2), all_words(3));
    return hn::Mul(d, to_floats(hn::Sub(hn::Or(low, hn::ShiftLeft<4>(high)), all_words(32))));
  }
  F d;
};

template <>
struct PanelOf<ggml::Q6_K> : PanelBlock<ggml::Q6_K> {
  static constexpr int groups = 2, above = 32, most = 63;
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : PanelBlock(block, part), d(half(0)) {}
  template <int r>
  HWY_INLINE void codes(W* c) const {
    constexpr int in_half = r % 4, first = r / 4 * 16 + in_half % 2 * 8;
    for (int j = 0; j < 8; ++j)
      c[j] = hn::Or(byte_bits<in_half / 2 * 4, 4>(word(first + j)),
                    byte_bits<in_half * 2, 2, 4>(word(32 + r / 4 * 8 + j)));
  }
  template <int r>
  HWY_INLINE F scale(int g) const {
    const int p = 2 * r + g;
    const auto up = hn::BitCast(Signed(), hn::ShiftLeftSame(word(48 + p / 4), 24 - p % 4 * 8));
    return hn::Mul(d, hn::ConvertTo(Floats(), hn::ShiftRight<24>(up)));
  }
  F d;
};

/// Q4_K and Q5_K: the scales and minima of eight rows, 6 bits each, in three words.
template <class Layout, int most_code>
struct SixBitScales : PanelBlock<Layout> {
  static constexpr int groups = 1, above = 0, most = most_code;
  static constexpr bool offsets = true;
  HWY_INLINE SixBitScales(const std::uint8_t* block, int part)
      : PanelBlock<Layout>(block, part), d(this->half(0)), m(this->half(1)) {}
  template <int r>
  HWY_INLINE F scale(int) const {
    return hn::Mul(d, to_floats(code<r, 0>()));
  }
  template <int r>
  HWY_INLINE F offset(int) const {
    return hn::Mul(m, to_floats(code<r, 1>()));
  }
  /// The scale's code (which = 0) or the minimum's. Rows 4 to 7 have their upper bits above those of rows 0 to 3.
  template <int r, int which>
  HWY_INLINE W code() const {
    if constexpr (r < 4) {
      return word_bits<8 * r, 6>(this->word(which));
    } else {
      constexpr int byte = 8 * (r - 4);
      return hn::Or(word_bits<byte + 4 * which, 4>(this->word(2)),
                    hn::ShiftLeft<4>(word_bits<byte + 6, 2>(this->word(which))));
    }
  }
  F d, m;
};

template <>
struct PanelOf<ggml::Q4_K> : SixBitScales<ggml::Q4_K, 15> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : SixBitScales(block, part) {}
  template <int r>
  HWY_INLINE void codes(W* c) const {
    four_bits<r>(*this, 3, c);
  }
};
template <>
struct PanelOf<ggml::Q5_K> : SixBitScales<ggml::Q5_K, 31> {
  HWY_INLINE PanelOf(const std::uint8_t* block, int part) : SixBitScales(block, part) {}
  template <int r>
  HWY_INLINE void codes(W* c) const {
    four_bits<r>(*this, 11, c);
    for (int j = 0; j < 8; ++j) c[j] = hn::Or(c[j], byte_bits<r, 1, 4>(word(3 + j)));
  }
};

}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
