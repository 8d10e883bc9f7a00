#include "models/ops/kernels/packed_rows.h"

#include <algorithm>

#include "base/error.h"
#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/ops/kernels/packed_rows.cpp"
#include <hwy/foreach_target.h>

#include "models/ops/kernels/ggml_groups.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {
namespace {

/// Rows that share decoded values: AVX-512 has twice as many registers as AVX2.
constexpr int most_rows = parts == 1 ? 8 : 4;
/// Columns multiplied with one part of x after the other, while that part stays in the cache.
constexpr int strip = 16;
/// Numbers of x in such a part: 16 KiB.
constexpr int part_of_x = 4096;

/// Fetches the cache lines of a block that is needed soon: hardware finds no pattern in rows that end after 2 KiB.
template <class Type>
HWY_INLINE void prefetch_block(const std::uint8_t* block) {
  repeat<(Type::bytes + 63) / 64>([&](auto line) ZERO_LAMBDA { hwy::Prefetch(block + line * 64); });
}

/// Adds blocks [first, last) of columns `column` to column + Columns, times Rows of the Padded rows at x. Columns at or
/// past the end repeat the last one. `in_strip` holds the columns' sums, before their lanes are added.
template <class Type, int Rows, int Padded, int Columns>
HWY_INLINE void add_blocks(const PackedProduct& a, const float* x, std::int64_t column, std::int64_t end,
                           std::int64_t first, std::int64_t last, V (*in_strip)[Rows]) {
  constexpr int step = Padded * static_cast<int>(width), pieces_of_block = Type::values / static_cast<int>(width);
  const std::int64_t row_bytes = a.length / Type::values * Type::bytes;
  const std::uint8_t* weight[Columns];
  V sums[Columns][Rows];
  repeat<Columns>([&](auto c) ZERO_LAMBDA {
    weight[c] = a.weight + std::min(column + c, end - 1) * row_bytes;
    repeat<Rows>([&](auto r) ZERO_LAMBDA { sums[c][r] = in_strip[c][r]; });
  });
  for (std::int64_t b = first; b < last; ++b) [&]<int... i>(std::integer_sequence<int, i...>) ZERO_LAMBDA {
      const Type blocks[]{Type(weight[i] + b * Type::bytes)...};
      (prefetch_block<Type>(weight[i] + b * Type::bytes + 2 * Columns * row_bytes), ...);
      const float* x_of_block = x + b * pieces_of_block * step;
      repeat<Type::groups>([&](auto g) ZERO_LAMBDA {
        repeat<Columns>([&](auto c) ZERO_LAMBDA {
          V w[Type::pieces];
          blocks[c].template decode<g>(w);
          repeat<Type::pieces>([&](auto k) ZERO_LAMBDA {
            repeat<Rows>([&](auto r) ZERO_LAMBDA {
              const V of_x = load(x_of_block + Type::piece_of(g, k) * step + r * width, width);
              sums[c][r] = multiply_add(of_x, w[k], sums[c][r]);
            });
          });
        });
      });
    }
  (std::make_integer_sequence<int, Columns>());
  repeat<Columns>([&](auto c) ZERO_LAMBDA { repeat<Rows>([&](auto r) ZERO_LAMBDA { in_strip[c][r] = sums[c][r]; }); });
}

HWY_INLINE void store_sum(const PackedProduct& a, std::int64_t at, float total) {
  if (a.number == Number::fp32) {
    float& y = static_cast<float*>(a.y)[at];
    y = total + (a.add ? y : 0.0f);
  } else {
    Bf16& y = static_cast<Bf16*>(a.y)[at];
    y = rounded<Bf16>(total + (a.add ? to_float(y) : 0.0f));
  }
}

/// Multiplies Rows of the Padded rows of x, from `row` on, with columns [column, end) of a strip. Rows of zeros are not
/// stored. With few rows, sums of several columns hide the latency of additions.
template <class Type, int Rows, int Padded>
void rows_by_strip(const PackedProduct& a, std::int64_t row, std::int64_t column, std::int64_t end) {
  constexpr int columns = Rows >= 4 ? 1 : 4 / Rows;
  V sums[strip][Rows];
  for (auto& of_column : sums)
    for (V& s : of_column) s = splat(0);
  const std::int64_t blocks = a.length / Type::values, step = part_of_x / Padded / Type::values;
  for (std::int64_t b = 0; b < blocks; b += step)
    for (std::int64_t c = column; c < end; c += columns)
      add_blocks<Type, Rows, Padded, columns>(a, a.x + row * width, c, end, b, std::min(b + step, blocks),
                                              sums + (c - column));
  for (std::int64_t c = column; c < end; ++c)
    for (std::int64_t r = 0; r < std::min<std::int64_t>(Rows, a.rows - row); ++r)
      store_sum(a, (row + r) * a.y_stride + c, sum(sums[c - column][r]));
}

template <class Type>
void product_of(const PackedProduct& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t column = begin; column < end; column += strip) {
    const std::int64_t stop = std::min<std::int64_t>(end, column + strip);
    if (a.rows == 1)
      rows_by_strip<Type, 1, 1>(a, 0, column, stop);
    else if (a.rows == 2)
      rows_by_strip<Type, 2, 2>(a, 0, column, stop);
    else if (a.rows <= 4)
      rows_by_strip<Type, 4, 4>(a, 0, column, stop);
    else
      for (int row = 0; row < 8; row += most_rows) rows_by_strip<Type, most_rows, 8>(a, row, column, stop);
  }
}

template <class Type, class T>
void unpack_to(const std::uint8_t* from, std::int64_t count, T* to) {
  for (std::int64_t b = 0; b < count / Type::values; ++b) {
    const Type block(from + b * Type::bytes);
    repeat<Type::groups>([&](auto g) ZERO_LAMBDA {
      V w[Type::pieces];
      block.template decode<g>(w);
      repeat<Type::pieces>(
          [&](auto k) ZERO_LAMBDA { store(to + b * Type::values + Type::piece_of(g, k) * width, w[k], width); });
    });
  }
}

/// Calls f(Type*) with the struct of a type.
template <class F>
void with_type(GgmlType type, const F& f) {
  switch (type) {
#define BLOCK_TYPE(type, Layout) \
  case GgmlType::type:           \
    return f(static_cast<const Layout*>(nullptr));
#include "base/numbers/ggml_block_types.inl"
    case GgmlType::f16:
      return f(static_cast<const Halves<Fp16>*>(nullptr));
    case GgmlType::bf16:
      return f(static_cast<const Halves<Bf16>*>(nullptr));
    default:
      throw InternalError("rows of this type are not packed");
  }
}

void product_here(const PackedProduct& a, std::int64_t begin, std::int64_t end) {
  with_type(a.type, [&]<class Type>(const Type*) { product_of<Type>(a, begin, end); });
}

void unpack_here(GgmlType type, const std::uint8_t* from, std::int64_t count, Number number, void* to) {
  with_type(type, [&]<class Type>(const Type*) {
    if (number == Number::fp32)
      unpack_to<Type>(from, count, static_cast<float*>(to));
    else
      unpack_to<Type>(from, count, static_cast<Bf16*>(to));
  });
}

}  // namespace
}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero::kernels {

HWY_EXPORT(product_here);
HWY_EXPORT(unpack_here);

void packed_product(const PackedProduct& product, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(product_here)(product, begin, end);
}
void unpack_rows(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values) {
  HWY_DYNAMIC_DISPATCH(unpack_here)(type, blocks, count, number, values);
}

}  // namespace zero::kernels
#endif
