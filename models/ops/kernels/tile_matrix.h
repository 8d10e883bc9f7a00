#pragma once
// Matrix products on AMX tiles, for matrices of any size. Both factors are packed into panels of 32 rows or columns.
// A block of the second factor stays in the L2 cache while the panels of the first pass by. Sums are fp32 and are
// rounded once. The order of a sum depends only on its number of terms, so a result does not depend on how the rows or
// columns are divided among threads.
#include <cstddef>
#include <cstdint>

namespace zero::kernels {

/// A matrix of bf16 or fp32. Strides are in elements, and one of them is 1.
struct TileFactor {
  const void* at;
  std::int64_t row_stride, column_stride;
};

/// How factors become bf16. `bf16` factors are multiplied as they are. `rounded` factors are fp32 and are rounded to
/// bf16. `split` factors are fp32: each becomes the sum of two bf16 numbers, and three of the four products are added.
/// That leaves an error of about 2^-17 of a term. An infinity becomes a NaN, and so does a number above bf16's largest.
/// Tiles take denormals for zeros, so of a factor below 1e-35 the second number is lost.
enum class TileForm : std::uint8_t { bf16, rounded, split };

/// out = a b, or with `add` out += a b.
struct TileProduct {
  TileFactor a, b;  // [rows, terms], [terms, columns]
  std::int64_t rows, terms, columns;
  TileForm form;
  void* out;  // [rows, columns], adjacent columns
  std::int64_t out_stride;
  bool wide;  // out is fp32, not bf16
  bool add;
};

/// Returns whether the processor has tiles for bf16 and Linux lets this process use them. Required before
/// tile_multiply() runs.
bool has_tile_products();

/// The bytes of workspace that a product needs, from its sizes and form alone.
std::size_t tile_workspace_bytes(const TileProduct& product);

/// Multiplies on the calling thread. The workspace is 64-byte aligned. No size may be 0.
void tile_multiply(const TileProduct& product, void* workspace);

}  // namespace zero::kernels
