#pragma once
// Products of panels, which are 16 rows of a weight in a block type of ggml (panel_layout.h). A product needs no sum
// across lanes, and multiplies by the scales of 16 rows at once. Codes stay integers, and x is held as integers too.
// Products are summed exactly over values with one scale, then in fp32. Uses plain pointers and no LibTorch, and is
// compiled once per kind of processor. A row's result does not depend on the other rows.
#include <cstdint>

#include "base/numbers/number.h"
#include "models/ops/kernels/few_rows.h"
#include "models/ops/kernels/panel_layout.h"

namespace zero::kernels {

/// 32 values of a row of x as integers: x = (65536 a + 256 b + c) scale. The integers have up to 22 bits and a sign.
/// Errors are at most 2^-22 of the largest value, or 2^-127 if that is more. If a value is not finite, `scale` is NaN.
struct FixedPoint {
  static constexpr std::int64_t values = 32, digits = 3;
  std::int32_t words[digits][values / 4];  // a, b and c, signed bytes
  std::int32_t start[digits][2];  // minus the sum of each group's digits, times what codes are above their value
  float total[2];                 // the sum of each group's integers, for types with minima
  float scale;                    // a power of two
};

/// Rounds x [rows, length] to `out` [length / 32, rows], for a product with this type.
void to_fixed_point(GgmlType type, const float* x, std::int64_t rows, std::int64_t length, FixedPoint* out);

struct PanelProduct {
  GgmlType type;                                 // one that has panels
  const std::uint8_t* panels;                    // of `columns` rows
  const FixedPoint* x;                           // [length / 32, rows]
  void* y;                                       // [rows, columns], rows y_stride apart
  Number number;                                 // y's type: fp32 or bf16
  std::int64_t rows, columns, length, y_stride;  // at most most_few_rows rows
  bool add;
};

/// Computes y = x weight^T, or with `add` y += x weight^T, for panels [begin, end), rounded once.
void panel_product(const PanelProduct& product, std::int64_t begin, std::int64_t end);

}  // namespace zero::kernels
