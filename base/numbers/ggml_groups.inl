// The values of ggml's blocks as vectors, one struct for each type, with the bits of base/numbers/ggml_codes.h. A block
// is decoded in groups of pieces of 16 values that share bytes. For files of kernels (base/simd/targets.h); included
// once per target, so the guard toggles.
//
// Each struct has
//   values, bytes   of a block
//   groups, pieces  the groups of a block, and the pieces of a group
//   piece_of(g, k)  the place in the block of group g's piece k
//   Type(block)     the scales of a block
//   decode<g>(w)    the values of group g, w[pieces]
#if defined(ZERO_BASE_NUMBERS_GGML_GROUPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ZERO_BASE_NUMBERS_GGML_GROUPS_INL
#undef ZERO_BASE_NUMBERS_GGML_GROUPS_INL
#else
#define ZERO_BASE_NUMBERS_GGML_GROUPS_INL
#endif

#include <cstring>

#include "base/numbers/ggml_codes.h"
#include "base/simd/row16.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {

using ByteTag = hn::FixedTag<std::uint8_t, 16>;
using Bytes = hn::Vec<ByteTag>;

HWY_INLINE Bytes bytes_at(const std::uint8_t* from) { return hn::LoadU(ByteTag(), from); }
HWY_INLINE Bytes all_of(int byte) { return hn::Set(ByteTag(), static_cast<std::uint8_t>(byte)); }
HWY_INLINE Bytes minus(Bytes bytes, int byte) { return hn::Sub(bytes, all_of(byte)); }

/// Bits [first, first + count) of each byte.
template <int first, int count>
HWY_INLINE Bytes bits_of(Bytes bytes) {
  const hn::Repartition<std::uint16_t, ByteTag> pairs;
  return hn::And(hn::BitCast(ByteTag(), hn::ShiftRight<first>(hn::BitCast(pairs, bytes))), all_of((1 << count) - 1));
}
/// `value` where bit `n` of a byte is set, otherwise zero.
template <int n>
HWY_INLINE Bytes where_bit(Bytes bytes, int value) {
  return hn::IfThenElseZero(hn::TestBit(bytes, all_of(1 << n)), all_of(value));
}

/// Sixteen signed bytes as floats. A template, so that the branch for other targets is not compiled.
template <class SameBytes>
HWY_INLINE V floats_of(SameBytes codes) {
  const hn::RebindToSigned<Floats> words;
  const hn::Rebind<std::int8_t, Floats> of_part;
  V out;
  if constexpr (parts == 1) {
    out.part[0] = hn::ConvertTo(Floats(), hn::PromoteTo(words, hn::BitCast(of_part, codes)));
  } else {
    alignas(16) std::int8_t all[width];
    hn::Store(codes, ByteTag(), reinterpret_cast<std::uint8_t*>(all));
    for (int i = 0; i < parts; ++i)
      out.part[i] = hn::ConvertTo(Floats(), hn::PromoteTo(words, hn::LoadU(of_part, all + i * part_width)));
  }
  return out;
}

HWY_INLINE float half_of(const std::uint8_t* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, 2);
  const hn::FixedTag<float, 4> four;
  return hn::GetLane(hn::PromoteTo(four, hn::BitCast(hn::Rebind<hwy::float16_t, decltype(four)>(),
                                                     hn::Set(hn::Rebind<std::uint16_t, decltype(four)>(), bits))));
}

HWY_INLINE std::uint32_t word_at(const std::uint8_t* from) {
  std::uint32_t word;
  std::memcpy(&word, from, 4);
  return word;
}

/// The bytes of four words. Words that were stored would delay a vector load.
HWY_INLINE Bytes bytes_of(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  const hn::Repartition<std::uint64_t, ByteTag> pairs;
  const auto low = hn::Set(pairs, a | static_cast<std::uint64_t>(b) << 32),
             high = hn::Set(pairs, c | static_cast<std::uint64_t>(d) << 32);
  return hn::BitCast(ByteTag(), hn::InterleaveLower(pairs, low, high));
}

/// The sixteen values of a code of four bits. With a vector of sixteen floats, values are looked up. Otherwise codes
/// are looked up and then scaled.
struct CodeBook {
  static constexpr std::int8_t around_zero[]{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  static constexpr std::int8_t from_zero[]{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  static constexpr std::int8_t uneven[]{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

  HWY_INLINE CodeBook(const std::int8_t* codes, float scale, float offset = 0)
      : codes_(bytes_at(reinterpret_cast<const std::uint8_t*>(codes))), scale_(splat(scale)), offset_(splat(offset)) {
    if constexpr (parts == 1) values_ = multiply_subtract(scale_, floats_of(codes_), offset_);
  }

  HWY_INLINE V low(Bytes bytes) const { return look_up<0>(bytes); }
  HWY_INLINE V high(Bytes bytes) const { return look_up<4>(bytes); }

 private:
  template <int first, class SameBytes>
  HWY_INLINE V look_up(SameBytes bytes) const {
    if constexpr (parts == 1) {
      const hn::RebindToUnsigned<Floats> words;
      const auto wide = hn::PromoteTo(words, bytes);
      const auto index = first ? hn::ShiftRight<first>(wide) : hn::And(wide, hn::Set(words, 15));
      return {{hn::TableLookupLanes(values_.part[0], hn::IndicesFromVec(Floats(), index))}};
    } else {
      return multiply_subtract(scale_, floats_of(hn::TableLookupBytes(codes_, bits_of<first, 4>(bytes))), offset_);
    }
  }

  Bytes codes_;
  V scale_, offset_, values_;
};

/// Types of 32 values have one group.
template <class Layout>
struct OneGroup {
  static constexpr int values = Layout::values, bytes = Layout::bytes, groups = 1, pieces = 2;
  static constexpr int piece_of(int, int k) { return k; }
};

struct Q8_0 : OneGroup<ggml::Q8_0> {
  HWY_INLINE explicit Q8_0(const std::uint8_t* block) : codes(block + 2), scale(splat(half_of(block))) {}
  template <int>
  HWY_INLINE void decode(V* w) const {
    for (int k = 0; k < 2; ++k) w[k] = floats_of(bytes_at(codes + k * 16)) * scale;
  }
  const std::uint8_t* codes;
  V scale;
};

/// Two codes of four bits in each of 16 bytes.
template <class Layout>
struct OneCodeBook : OneGroup<Layout> {
  HWY_INLINE OneCodeBook(const std::uint8_t* from, const CodeBook& of_codes) : codes(bytes_at(from)), book(of_codes) {}
  template <int>
  HWY_INLINE void decode(V* w) const {
    w[0] = book.low(codes);
    w[1] = book.high(codes);
  }
  Bytes codes;
  CodeBook book;
};

struct Q4_0 : OneCodeBook<ggml::Q4_0> {
  HWY_INLINE explicit Q4_0(const std::uint8_t* block)
      : OneCodeBook(block + 2, CodeBook(CodeBook::around_zero, half_of(block))) {}
};
struct Q4_1 : OneCodeBook<ggml::Q4_1> {
  HWY_INLINE explicit Q4_1(const std::uint8_t* block)
      : OneCodeBook(block + 4, CodeBook(CodeBook::from_zero, half_of(block), -half_of(block + 2))) {}
};
struct IQ4_NL : OneCodeBook<ggml::IQ4_NL> {
  HWY_INLINE explicit IQ4_NL(const std::uint8_t* block)
      : OneCodeBook(block + 2, CodeBook(CodeBook::uneven, half_of(block))) {}
};

/// Fifth bits come before the codes of four bits.
HWY_INLINE Bytes with_fifth_bits(Bytes codes, const std::uint8_t* fifth) {
  return hn::Or(codes, hn::IfThenElseZero(hn::LoadMaskBits(ByteTag(), fifth), all_of(16)));
}

struct Q5_0 : OneGroup<ggml::Q5_0> {
  HWY_INLINE explicit Q5_0(const std::uint8_t* at) : block(at), scale(splat(half_of(at))) {}
  template <int>
  HWY_INLINE void decode(V* w) const {
    const Bytes codes = bytes_at(block + 6);
    w[0] = floats_of(minus(with_fifth_bits(bits_of<0, 4>(codes), block + 2), 16)) * scale;
    w[1] = floats_of(minus(with_fifth_bits(bits_of<4, 4>(codes), block + 4), 16)) * scale;
  }
  const std::uint8_t* block;
  V scale;
};

struct Q5_1 : OneGroup<ggml::Q5_1> {
  HWY_INLINE explicit Q5_1(const std::uint8_t* at)
      : block(at), scale(splat(half_of(at))), minimum(splat(half_of(at + 2))) {}
  template <int>
  HWY_INLINE void decode(V* w) const {
    const Bytes codes = bytes_at(block + 8);
    w[0] = multiply_add(floats_of(with_fifth_bits(bits_of<0, 4>(codes), block + 4)), scale, minimum);
    w[1] = multiply_add(floats_of(with_fifth_bits(bits_of<4, 4>(codes), block + 6)), scale, minimum);
  }
  const std::uint8_t* block;
  V scale, minimum;
};

/// Scales and minima of pieces, or of rows of 32 values.
struct Scales {
  alignas(64) float scale[16];
  alignas(64) float offset[16];
};

/// Types with a scale for each piece. Group g has the pieces of half g / 2 at the even (g % 2 = 0) or odd places.
template <class Layout>
struct HalvesOfRows {
  static constexpr int values = Layout::values, bytes = Layout::bytes, groups = 4, pieces = 4;
  static constexpr int piece_of(int g, int k) { return g / 2 * 8 + k * 2 + g % 2; }
};

struct Q2_K : HalvesOfRows<ggml::Q2_K> {
  HWY_INLINE explicit Q2_K(const std::uint8_t* at) : block(at) {
    const Bytes packed = bytes_at(at);
    store(of.scale, floats_of(bits_of<0, 4>(packed)) * half_of(at + 80), width);
    store(of.offset, floats_of(bits_of<4, 4>(packed)) * half_of(at + 82), width);
  }
  template <int g>
  HWY_INLINE void decode(V* w) const {
    const Bytes codes = bytes_at(block + 16 + g * 16);
    repeat<4>([&](auto k) ZERO_LAMBDA {
      const int p = piece_of(g, k);
      w[k] = multiply_subtract(floats_of(bits_of<k * 2, 2>(codes)), splat(of.scale[p]), splat(of.offset[p]));
    });
  }
  const std::uint8_t* block;
  Scales of;
};

struct Q3_K : HalvesOfRows<ggml::Q3_K> {
  HWY_INLINE explicit Q3_K(const std::uint8_t* at) : block(at) {
    const std::uint32_t a = word_at(at + 96), b = word_at(at + 100), high = word_at(at + 104);
    constexpr std::uint32_t four = 0x0F0F0F0F, two = 0x03030303;
    const Bytes codes = bytes_of((a & four) | (high & two) << 4, (b & four) | (high >> 2 & two) << 4,
                                 (a >> 4 & four) | (high >> 4 & two) << 4, (b >> 4 & four) | (high >> 6 & two) << 4);
    store(of.scale, floats_of(minus(codes, 32)) * half_of(at + 108), width);
  }
  template <int g>
  HWY_INLINE void decode(V* w) const {
    const Bytes codes = bytes_at(block + 32 + g * 16), third = bytes_at(block + g % 2 * 16);
    repeat<4>([&](auto k) ZERO_LAMBDA {
      const Bytes code = hn::Or(bits_of<k * 2, 2>(codes), where_bit<g / 2 * 4 + k>(third, 4));
      w[k] = floats_of(minus(code, 4)) * splat(of.scale[piece_of(g, k)]);
    });
  }
  const std::uint8_t* block;
  Scales of;
};

struct Q6_K : HalvesOfRows<ggml::Q6_K> {
  HWY_INLINE explicit Q6_K(const std::uint8_t* at) : block(at) {
    store(of.scale, floats_of(bytes_at(at + 192)) * half_of(at + 208), width);
  }
  template <int g>
  HWY_INLINE void decode(V* w) const {
    const std::uint8_t* low = block + g / 2 * 64 + g % 2 * 16;
    const Bytes rows[]{bytes_at(low), bytes_at(low + 32)}, high = bytes_at(block + 128 + g * 16);
    repeat<4>([&](auto k) ZERO_LAMBDA {
      const Bytes code = hn::Or(bits_of<k / 2 * 4, 4>(rows[k % 2]), shifted_4(bits_of<k * 2, 2>(high)));
      w[k] = floats_of(minus(code, 32)) * splat(of.scale[piece_of(g, k)]);
    });
  }
  /// Bytes below 16, times 16.
  static HWY_INLINE Bytes shifted_4(Bytes bytes) {
    const hn::Repartition<std::uint16_t, ByteTag> pairs;
    return hn::BitCast(ByteTag(), hn::ShiftLeft<4>(hn::BitCast(pairs, bytes)));
  }
  const std::uint8_t* block;
  Scales of;
};

/// Q4_K and Q5_K: eight rows of 32 values, each with a scale and a minimum of 6 bits. A group is two rows.
template <class Layout>
struct PairsOfRows {
  static constexpr int values = Layout::values, bytes = Layout::bytes, groups = 4, pieces = 4;
  static constexpr int piece_of(int g, int k) { return g * 4 + k; }

  HWY_INLINE explicit PairsOfRows(const std::uint8_t* at) : block(at) {
    // Bytes 4 to 15 are the words a, b and c. The codes are a & 63, c & 15 | a >> 6 << 4, and the same of b and c >> 4.
    alignas(16) static constexpr std::uint8_t low_at[]{4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15},
        high_at[]{4, 5, 6, 7, 4, 5, 6, 7, 8, 9, 10, 11, 8, 9, 10, 11};
    alignas(16) static constexpr std::uint32_t low_shift[]{0, 0, 0, 4}, high_shift[]{0, 2, 0, 2},
        low_mask[]{0x3F3F3F3F, 0x0F0F0F0F, 0x3F3F3F3F, 0x0F0F0F0F}, high_mask[]{0, 0x30303030, 0, 0x30303030};
    const hn::Repartition<std::uint32_t, ByteTag> words;
    const auto bits = [&](const std::uint8_t* from, const std::uint32_t* shift, const std::uint32_t* mask) ZERO_LAMBDA {
      const auto moved = hn::BitCast(words, hn::TableLookupBytes(bytes_at(at), hn::Load(ByteTag(), from)));
      return hn::And(hn::Shr(moved, hn::Load(words, shift)), hn::Load(words, mask));
    };
    const auto codes = hn::Or(bits(low_at, low_shift, low_mask), bits(high_at, high_shift, high_mask));
    store(of, floats_of(hn::BitCast(ByteTag(), codes)) * halves(half_of(at), half_of(at + 2)), width);
  }
  /// Eight lanes of a, and eight of b.
  static HWY_INLINE V halves(float a, float b) {
    V both = splat(a);
    for (int i = 0; i < parts; ++i) {
      const auto in_first =
          hn::FirstN(Floats(), static_cast<std::size_t>(std::max<std::int64_t>(8 - i * part_width, 0)));
      both.part[i] = hn::IfThenElse(in_first, both.part[i], hn::Set(Floats(), b));
    }
    return both;
  }
  HWY_INLINE float scale_of(int row) const { return of[row]; }
  HWY_INLINE float offset_of(int row) const { return of[8 + row]; }

  const std::uint8_t* block;
  alignas(64) float of[16];  // the scales of the rows, then their minima
};

struct Q4_K : PairsOfRows<ggml::Q4_K> {
  HWY_INLINE explicit Q4_K(const std::uint8_t* at) : PairsOfRows(at) {}
  template <int g>
  HWY_INLINE void decode(V* w) const {
    const CodeBook first(CodeBook::from_zero, scale_of(2 * g), offset_of(2 * g)),
        second(CodeBook::from_zero, scale_of(2 * g + 1), offset_of(2 * g + 1));
    for (int k = 0; k < 2; ++k) {
      const Bytes codes = bytes_at(block + 16 + g * 32 + k * 16);
      w[k] = first.low(codes);
      w[2 + k] = second.high(codes);
    }
  }
};

struct Q5_K : PairsOfRows<ggml::Q5_K> {
  HWY_INLINE explicit Q5_K(const std::uint8_t* at) : PairsOfRows(at) {}
  template <int g>
  HWY_INLINE void decode(V* w) const {
    repeat<2>([&](auto row) ZERO_LAMBDA {
      const V of_row = splat(scale_of(2 * g + row)), offset = splat(offset_of(2 * g + row));
      for (int k = 0; k < 2; ++k) {
        const Bytes low = bits_of<row * 4, 4>(bytes_at(block + 48 + g * 32 + k * 16)),
                    high = where_bit<2 * g + row>(bytes_at(block + 16 + k * 16), 16);
        w[row * 2 + k] = multiply_subtract(floats_of(hn::Or(low, high)), of_row, offset);
      }
    });
  }
};

struct IQ4_XS {
  static constexpr int values = ggml::IQ4_XS::values, bytes = ggml::IQ4_XS::bytes, groups = 8, pieces = 2;
  static constexpr int piece_of(int g, int k) { return g * 2 + k; }

  HWY_INLINE explicit IQ4_XS(const std::uint8_t* at)
      : block(at), low(word_at(at + 4)), high(at[2] | at[3] << 8), scale(half_of(at)) {}
  template <int g>
  HWY_INLINE void decode(V* w) const {
    const int code = static_cast<int>((low >> 4 * g & 15u) | (high >> 2 * g & 3u) << 4) - 32;
    const CodeBook book(CodeBook::uneven, scale * static_cast<float>(code));
    const Bytes codes = bytes_at(block + 8 + g * 16);
    w[0] = book.low(codes);
    w[1] = book.high(codes);
  }
  const std::uint8_t* block;
  std::uint32_t low, high;
  float scale;
};

/// Types without blocks, 32 values at a time.
template <class Half>
struct Halves {
  static constexpr int values = 2 * width, bytes = 2 * values, groups = 1, pieces = 2;
  static constexpr int piece_of(int, int k) { return k; }
  HWY_INLINE explicit Halves(const std::uint8_t* at) : from(reinterpret_cast<const Half*>(at)) {}
  template <int>
  HWY_INLINE void decode(V* w) const {
    for (int k = 0; k < 2; ++k) w[k] = load(from + k * width, width);
  }
  const Half* from;
};

}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
