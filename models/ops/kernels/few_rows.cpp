#include "models/ops/kernels/few_rows.h"

#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/ops/kernels/few_rows.cpp"
#include <hwy/foreach_target.h>

#include "base/simd/row16.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::HWY_NAMESPACE {
namespace {

/// Sums held at a time: AVX2's registers, less those for inputs.
constexpr int sums_at_once = 4;

/// Multiplies rows `row` to row + Rows of x with columns `column` to column + Columns.
template <int Rows, int Columns, class W, class Y>
HWY_INLINE void few_by_few(const FewRows<W, Y>& a, std::int64_t row, std::int64_t column) {
  V sums[Rows][Columns];
  for (auto& of_row : sums)
    for (V& s : of_row) s = splat(0);
  const float* x = a.x + row * a.length;
  const W* weight = a.weight + column * a.weight_stride;
  by_16(a.length, [&](std::int64_t i, auto n) ZERO_LAMBDA {
    for (int c = 0; c < Columns; ++c) {
      const V w = load(weight + c * a.weight_stride + i, n);
      hwy::Prefetch(weight + (c + sums_at_once) * a.weight_stride + i);  // hardware finds no pattern in short rows
      for (int r = 0; r < Rows; ++r) sums[r][c] = multiply_add(load(x + r * a.length + i, n), w, sums[r][c]);
    }
  });
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) {
      Y& y = a.y[(row + r) * a.y_stride + column + c];
      y = rounded<Y>(sum(sums[r][c]) + (a.add ? to_float(y) : 0.0f));
    }
}

/// Processes rows from `row` on in groups of Rows, then of half as many.
template <int Rows, class W, class Y>
HWY_INLINE void by_rows_of(const FewRows<W, Y>& a, std::int64_t row, std::int64_t begin, std::int64_t end) {
  constexpr int columns = sums_at_once / Rows;
  for (; row + Rows <= a.rows; row += Rows) {
    std::int64_t column = begin;
    for (; column + columns <= end; column += columns) few_by_few<Rows, columns>(a, row, column);
    for (; column < end; ++column) few_by_few<Rows, 1>(a, row, column);
  }
  if constexpr (Rows > 1) by_rows_of<Rows / 2>(a, row, begin, end);
}

template <class W, class Y>
void few_rows(const FewRows<W, Y>& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t column = begin; column < end; column += sums_at_once)
    by_rows_of<sums_at_once>(a, 0, column, std::min<std::int64_t>(end, column + sums_at_once));
}

#define FEW_ROWS(name, W, Y) \
  void name(const FewRows<W, Y>& a, std::int64_t begin, std::int64_t end) { few_rows(a, begin, end); }
#include "models/ops/kernels/few_rows_types.inl"

}  // namespace
}  // namespace zero::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero::kernels {

#define FEW_ROWS(name, W, Y)                                                            \
  HWY_EXPORT(name);                                                                     \
  template <>                                                                           \
  void few_rows_product(const FewRows<W, Y>& a, std::int64_t begin, std::int64_t end) { \
    HWY_DYNAMIC_DISPATCH(name)(a, begin, end);                                          \
  }
#include "models/ops/kernels/few_rows_types.inl"

}  // namespace zero::kernels
#endif
