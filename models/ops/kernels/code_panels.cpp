#include "models/ops/kernels/code_panels.h"

#include <algorithm>
#include <bit>
#include <limits>

// The target with VNNI, for which vpdpbusd is written in assembly: Highway 1.0 does not tell compilers of VNNI.
#define HWY_WANT_AVX3_DL
#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/ops/kernels/code_panels.cpp"
#include <hwy/foreach_target.h>

#include "models/ops/kernels/panel_codes.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {
namespace {

using I = hn::Vec<Signed>;

/// Four products of bytes below 256 with signed ones in each lane, summed exactly.
HWY_INLINE I four_products(W codes, I x) {
  const hn::Repartition<std::int16_t, Words> shorts;
  const auto pairs = hn::BitCast(shorts, x);
  const auto even = hn::Mul(hn::BitCast(shorts, hn::And(codes, all_words(0x00FF00FF))),
                            hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs))),
             odd = hn::Mul(hn::BitCast(shorts, hn::And(hn::ShiftRight<8>(codes), all_words(0x00FF00FF))),
                           hn::ShiftRight<8>(pairs));
  const auto both = [](auto products) ZERO_LAMBDA {
    const I words = hn::BitCast(Signed(), products);
    return hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(words)), hn::ShiftRight<16>(words));
  };
  return hn::Add(both(even), both(odd));
}

/// sum + the products of four codes, at most `most`, with the four signed bytes at x.
template <int most>
HWY_INLINE I add_products(I sum, W codes, const std::int32_t* x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum.raw) : "v"(codes.raw), "m"(*x));
  return sum;
#else
#if HWY_ARCH_X86
  if constexpr (most < 128) {  // so that sums of two products fit into 16 bits
    const I ones = hn::BitCast(Signed(), all_words(0x00010001)), of_x = hn::Set(Signed(), *x);
#if HWY_TARGET <= HWY_AVX3
    return hn::Add(sum, I{_mm512_madd_epi16(_mm512_maddubs_epi16(codes.raw, of_x.raw), ones.raw)});
#else
    return hn::Add(sum, I{_mm256_madd_epi16(_mm256_maddubs_epi16(codes.raw, of_x.raw), ones.raw)});
#endif
  }
#endif
  return hn::Add(sum, four_products(codes, hn::Set(Signed(), *x)));
#endif
}

/// Adds the products of row r of a block with x of `rows` rows.
template <int r, class Block>
HWY_INLINE void add_row(const Block& block, const FixedPoint* x, std::int64_t rows, F* sums) {
  constexpr int groups = Block::groups, words = 8 / groups;
  W codes[8];
  block.template codes<r>(codes);
  F scale[groups], offset[groups];
  repeat<groups>([&](auto g) ZERO_LAMBDA {
    scale[g] = block.template scale<r>(g);
    if constexpr (Block::offsets) offset[g] = block.template offset<r>(g);
  });
  for (std::int64_t row = 0; row < rows; ++row, ++x)
    repeat<groups>([&](auto g) ZERO_LAMBDA {
      I sum[FixedPoint::digits];
      repeat<FixedPoint::digits>([&](auto digit) ZERO_LAMBDA {
        sum[digit] = Block::above ? hn::Set(Signed(), x->start[digit][g]) : hn::Zero(Signed());
        repeat<words>([&](auto j) ZERO_LAMBDA {
          constexpr int word = g.value * words + j.value;
          sum[digit] = add_products<Block::most>(sum[digit], codes[word], &x->words[digit][word]);
        });
      });
      const F high = hn::ConvertTo(Floats(), hn::Add(hn::ShiftLeft<8>(sum[0]), sum[1])),
              total = hn::MulAdd(high, hn::Set(Floats(), 256.0f), hn::ConvertTo(Floats(), sum[2]));
      F product = hn::Mul(scale[g], total);
      if constexpr (Block::offsets) product = hn::NegMulAdd(offset[g], hn::Set(Floats(), x->total[g]), product);
      sums[row] = hn::MulAdd(product, hn::Set(Floats(), x->scale), sums[row]);
    });
}

/// Stores `count` sums to y, rounded once.
template <class T>
HWY_INLINE void store_part(const PanelProduct& a, F sums, std::int64_t at, std::int64_t count) {
  T* y = static_cast<T*>(a.y) + at;
  T few[part_width] = {};
  T* whole = count < part_width ? std::copy_n(y, count, few) - count : y;
  if (a.add) sums = hn::Add(sums, simd_here::load(Floats(), whole));
  simd_here::store(Floats(), sums, whole);
  if (count < part_width) std::copy_n(few, count, y);
}

/// How far ahead of the product memory is fetched: hardware stops at the end of a page of 4 KiB.
constexpr int ahead = 8192;

HWY_INLINE void prefetch(const std::uint8_t* from, int bytes) {
  for (int line = 0; line < bytes; line += 64) hwy::Prefetch(from + line);
}

template <class Layout>
void product_of(const PanelProduct& a, std::int64_t begin, std::int64_t end) {
  using Block = PanelOf<Layout>;
  const std::int64_t blocks = a.length / Layout::values, panel = blocks * Layout::bytes * panel_rows;
  for (std::int64_t p = begin; p < end; ++p)
    for (int part = 0; part < parts; ++part) {
      const std::int64_t column = p * panel_rows + part * part_width,
                         count = std::min<std::int64_t>(a.columns - column, part_width);
      if (count <= 0) break;
      F sums[most_few_rows];
      for (F& sum : sums) sum = hn::Zero(Floats());
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::uint8_t* of_block = a.panels + p * panel + b * Layout::bytes * panel_rows;
        if (part == 0) prefetch(of_block + ahead, Layout::bytes * panel_rows);
        const Block block(of_block, part);
        repeat<Block::rows>([&](auto r)
                                ZERO_LAMBDA { add_row<r>(block, a.x + (b * Block::rows + r) * a.rows, a.rows, sums); });
      }
      for (std::int64_t row = 0; row < a.rows; ++row) {
        const std::int64_t at = row * a.y_stride + column;
        if (a.number == Number::fp32)
          store_part<float>(a, sums[row], at, count);
        else
          store_part<Bf16>(a, sums[row], at, count);
      }
    }
}

/// Takes the lowest digit, a signed byte, off q.
HWY_INLINE I take_digit(I& q) {
  const I half = hn::Set(Signed(), 128), digit = hn::Sub(hn::And(hn::Add(q, half), hn::Set(Signed(), 255)), half);
  q = hn::ShiftRight<8>(hn::Sub(q, digit));
  return digit;
}

HWY_INLINE std::int32_t sum_of(I v) { return hn::GetLane(hn::SumOfLanes(Signed(), v)); }

/// 2^exponent, for exponents of normal numbers.
HWY_INLINE float power_of_two(std::int32_t exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

template <class Block>
HWY_INLINE void fixed_point_of(const float* x, FixedPoint& out) {
  constexpr int group = FixedPoint::values / Block::groups, step = static_cast<int>(part_width);
  I sizes = hn::Zero(Signed());  // the bits of the largest size
  for (int i = 0; i < FixedPoint::values; i += step)
    sizes = hn::Max(sizes, hn::BitCast(Signed(), hn::Abs(hn::LoadU(Floats(), x + i))));
  const std::int32_t largest = hn::GetLane(hn::MaxOfLanes(Signed(), sizes)), exponent = (largest >> 23) - 127;
  const std::int32_t up = std::min(21 - exponent, 126);  // so that the largest becomes 2^21 to 2^22, unless it is tiny
  out.scale = exponent < 128 ? power_of_two(-up) : std::numeric_limits<float>::quiet_NaN();
  const F factor = hn::Set(Floats(), power_of_two(up));
  auto* bytes = reinterpret_cast<std::int8_t*>(out.words);
  for (int g = 0; g < Block::groups; ++g) {
    I sums[FixedPoint::digits], all = hn::Zero(Signed());
    for (I& sum : sums) sum = hn::Zero(Signed());
    for (int i = g * group; i < (g + 1) * group; i += step) {
      I q = hn::NearestInt(hn::Mul(hn::LoadU(Floats(), x + i), factor));
      all = hn::Add(all, q);
      for (int digit = FixedPoint::digits - 1; digit >= 0; --digit) {
        const I lowest = take_digit(q);
        sums[digit] = hn::Add(sums[digit], lowest);
        hn::StoreU(hn::DemoteTo(hn::Rebind<std::int8_t, Floats>(), lowest), hn::Rebind<std::int8_t, Floats>(),
                   bytes + digit * FixedPoint::values + i);
      }
    }
    for (int digit = 0; Block::above && digit < FixedPoint::digits; ++digit)
      out.start[digit][g] = -Block::above * sum_of(sums[digit]);
    if (Block::offsets) out.total[g] = static_cast<float>(sum_of(all));
  }
}

void product_here(const PanelProduct& a, std::int64_t begin, std::int64_t end) {
  with_layout(a.type, [&]<class Layout>(const Layout*) { product_of<Layout>(a, begin, end); });
}

void fixed_point_here(GgmlType type, const float* x, std::int64_t rows, std::int64_t length, FixedPoint* out) {
  with_layout(type, [&]<class Layout>(const Layout*) {
    for (std::int64_t i = 0; i < length / FixedPoint::values; ++i)
      for (std::int64_t row = 0; row < rows; ++row)
        fixed_point_of<PanelOf<Layout>>(x + row * length + i * FixedPoint::values, out[i * rows + row]);
  });
}

}  // namespace
}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero::kernels {
HWY_EXPORT(product_here);
HWY_EXPORT(fixed_point_here);

void to_fixed_point(GgmlType type, const float* x, std::int64_t rows, std::int64_t length, FixedPoint* out) {
  HWY_DYNAMIC_DISPATCH(fixed_point_here)(type, x, rows, length, out);
}
void panel_product(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(product_here)(product, begin, end);
}

}  // namespace zero::kernels
#endif
