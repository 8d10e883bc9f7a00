#include "models/ops/tiled_product.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>

#include "models/ops/kernels/tile_matrix.h"
#include "models/ops/workspaces.h"

namespace zero {

namespace {

using kernels::TileFactor;
using kernels::TileForm;
using kernels::TileProduct;

constexpr std::int64_t side = 32;                 // of a block of sums
constexpr std::int64_t smallest_strip = 1 << 20;  // multiplications that are worth a thread
constexpr std::int64_t narrow = 16, little = 2 << 20, many_rows = 256, long_sum = 2048;

/// None if the factors have another type, or are fp32 that must be multiplied in fp32.
std::optional<TileForm> form_of(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type()) return std::nullopt;
  if (a.scalar_type() == at::kBFloat16) return TileForm::bf16;
  if (a.scalar_type() != at::kFloat) return std::nullopt;
  const auto precision = at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  if (precision == at::Float32Precision::BF16) return TileForm::rounded;
  if (precision == at::Float32Precision::TF32) return TileForm::split;
  return std::nullopt;
}

/// True for products that LibTorch multiplies as fast or faster (docs/results/products.md). Those with a short side are
/// such, since the other factor would be packed for little work. So are products of many rows by row-major factors,
/// unless a transposed second factor comes with long sums.
bool libtorch_is_faster(const at::Tensor& a, const at::Tensor& b) {
  const std::int64_t rows = a.size(0), terms = a.size(1), columns = b.size(1);
  if (std::min({rows, terms, columns}) <= narrow) return rows * terms * columns > little;
  const bool both_by_rows = b.stride(1) == 1;
  return rows >= many_rows && a.stride(1) == 1 && (both_by_rows || terms < long_sum);
}

bool has_adjacent(const at::Tensor& x) { return x.stride(0) == 1 || x.stride(1) == 1; }

TileFactor factor(const at::Tensor& x) {
  return {x.is_meta() ? nullptr : x.const_data_ptr(), x.stride(0), x.stride(1)};
}

const void* offset(const at::Tensor& x, std::int64_t elements) {
  return static_cast<const char*>(x.const_data_ptr()) + elements * static_cast<std::int64_t>(x.element_size());
}

/// The result divided into strips of rows or of columns, one for each thread.
struct Strips {
  bool of_rows;
  std::int64_t count, size;

  explicit Strips(const TileProduct& whole) : of_rows(whole.rows > whole.columns) {
    const std::int64_t all = of_rows ? whole.rows : whole.columns;
    const std::int64_t worth = std::max<std::int64_t>(1, whole.rows * whole.columns * whole.terms / smallest_strip);
    const std::int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
    const std::int64_t parts = std::min({threads, worth, (all + side - 1) / side});
    size = ((all + parts - 1) / parts + side - 1) / side * side;
    count = (all + size - 1) / size;
  }
};

TileProduct strip_of(const TileProduct& whole, const Strips& strips, std::int64_t i) {
  TileProduct strip = whole;
  std::int64_t& size = strips.of_rows ? strip.rows : strip.columns;
  size = std::min(strips.size, size - i * strips.size);
  return strip;
}

/// The last strip is smaller, but its blocks may be larger.
std::int64_t workspace_bytes(const TileProduct& whole, const Strips& strips) {
  const auto bytes = [&](std::int64_t i) { return kernels::tile_workspace_bytes(strip_of(whole, strips, i)); };
  return static_cast<std::int64_t>(std::max(bytes(0), bytes(strips.count - 1)));
}

void multiply_strip(const TileProduct& whole, const Strips& strips, std::int64_t i, const at::Tensor& out,
                    const at::Tensor& a, const at::Tensor& b, void* workspace) {
  TileProduct strip = strip_of(whole, strips, i);
  const std::int64_t begin = i * strips.size;
  if (strips.of_rows)
    strip.a.at = offset(a, begin * a.stride(0));
  else
    strip.b.at = offset(b, begin * b.stride(1));
  strip.out = static_cast<char*>(out.data_ptr()) +
              begin * (strips.of_rows ? out.stride(0) : 1) * static_cast<std::int64_t>(out.element_size());
  kernels::tile_multiply(strip, workspace);
}

}  // namespace

bool tiled_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  const std::optional<TileForm> form = form_of(a, b);
  if (!form || (out.scalar_type() != at::kBFloat16 && out.scalar_type() != at::kFloat)) return false;
  if (!kernels::has_tile_products()) return false;
  if (out.stride(1) != 1) {
    // out^T = b^T a^T
    return out.stride(0) == 1 && out.size(0) > 1 && tiled_product_into(out.t(), b.t(), a.t(), add);
  }
  const bool same_type = out.scalar_type() == a.scalar_type();
  if (*form == TileForm::bf16 && same_type && !at::globalContext().deterministicAlgorithms() &&
      libtorch_is_faster(a, b))
    return false;
  if (!has_adjacent(a) || !has_adjacent(b) || out.numel() == 0 || a.size(1) == 0) return false;
  const TileProduct whole{factor(a), factor(b),     out.size(0),
                          a.size(1), out.size(1),   *form,
                          nullptr,   out.stride(0), out.scalar_type() == at::kFloat,
                          add};
  const Strips strips(whole);
  const Workspaces workspaces(strips.count, workspace_bytes(whole, strips), out);
  if (out.is_meta()) return true;
  at::parallel_for(0, strips.count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) multiply_strip(whole, strips, i, out, a, b, workspaces[i]);
  });
  return true;
}

}  // namespace zero
