#pragma once
// Products and values of rows in ggml types. A block is decoded in registers, to the same bits as decode_blocks(), and
// multiplied with up to eight rows of x. Uses plain pointers and no LibTorch, and is compiled once per kind of
// processor. Sums are fp32, in an order that depends only on their length, so a row's result does not depend on the
// other rows.
#include <cstdint>

#include "base/numbers/ggml_type.h"
#include "base/numbers/number.h"

namespace zero::kernels {

/// A row of the weight must have a multiple of this many values, and consist of whole blocks.
inline constexpr std::int64_t packed_row_multiple = 32;

/// The most rows of one product.
inline constexpr std::int64_t most_packed_rows = 8;

/// The number of rows of x for `rows` rows of a product: the next power of two.
constexpr std::int64_t padded_rows(std::int64_t rows) { return rows <= 2 ? rows : rows <= 4 ? 4 : 8; }

struct PackedProduct {
  GgmlType type;               // any but F32
  const std::uint8_t* weight;  // [columns], one row after the other
  const float* x;              // [length / 16, padded_rows(rows), 16], so that the rows do not compete for cache sets
  void* y;                     // [rows, columns], rows y_stride apart
  Number number;               // y's type: fp32 or bf16
  std::int64_t rows, length, y_stride;
  bool add;
};

/// Computes y = x weight^T, or with `add` y += x weight^T, for columns [begin, end), rounded once.
void packed_product(const PackedProduct& product, std::int64_t begin, std::int64_t end);

/// Decodes `count` values, which are whole blocks and a multiple of packed_row_multiple, to fp32 or bf16.
void unpack_rows(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values);

}  // namespace zero::kernels
