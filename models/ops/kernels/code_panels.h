#pragma once
// Panels: 16 rows of a weight in a block type of ggml, laid out so that a vector holds the same word of all 16 rows.
// Products need neither sums across lanes nor a scale for each row apart. Codes stay integers, and x is held as
// integers too. Products are summed exactly over values with one scale, then in fp32. Uses plain pointers and no
// LibTorch, and is compiled once per kind of processor. A row's result does not depend on the other rows.
#include <cstdint>

#include "base/numbers/ggml_type.h"
#include "base/numbers/number.h"
#include "models/ops/kernels/few_rows.h"

namespace zero::kernels {

inline constexpr std::int64_t panel_rows = 16;

/// True for types that have blocks.
inline bool has_panels(GgmlType type) { return ggml_block(type) > 1; }

/// The bytes of the panels of `rows` rows of `length` values. The last panel is filled up with rows of zeros.
inline std::int64_t panel_bytes(GgmlType type, std::int64_t rows, std::int64_t length) {
  return (rows + panel_rows - 1) / panel_rows * panel_rows * ggml_bytes(type, length);
}

/// Lays out `count` rows, at most 16, of consecutive blocks as a panel.
void to_panel(GgmlType type, const std::uint8_t* rows, std::int64_t count, std::int64_t length, std::uint8_t* panel);

/// Writes row `row` of a panel as consecutive blocks, which have the bits given to to_panel().
void from_panel(GgmlType type, const std::uint8_t* panel, std::int64_t row, std::int64_t length, std::uint8_t* blocks);

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
