#include "models/ops/matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "models/ops/backends.h"
#include "models/ops/kernels/few_rows.h"
#include "models/ops/packed_matrix.h"
#include "models/ops/row_dispatch.h"
#include "models/ops/tiled_product.h"
#include "models/undivided.h"

namespace zero {

namespace {

/// The check by which LibTorch itself chooses: "mkldnn::_is_mkldnn_bf16_supported".
bool oneDNN_multiplies(const char* question) {
  const auto op = c10::Dispatcher::singleton().findSchema({question, ""});
  return op && op->typed<bool()>().call();
}

// Operands and results of blocks have at most a million numbers: 4 MiB in fp32, which fits in cache.
constexpr std::int64_t side = 512;     // rows, and columns
constexpr std::int64_t length = 2048;  // terms of a sum added at a time

constexpr std::int64_t rows_widened_at_once = 4096;  // for products added to a wider sum

/// A dimension split into equal blocks, except that the last may be smaller.
struct Cut {
  /// Blocks of at most `most`, balanced: a narrow last one would reread the other operand for little work.
  Cut(std::int64_t all, std::int64_t most)
      : blocks((all + most - 1) / most), size(((all + blocks - 1) / blocks + 15) / 16 * 16) {
    blocks = (all + size - 1) / size;
  }
  std::int64_t blocks, size;
};

/// True if b is a weight's transpose and the rows are few enough that reading b dominates.
bool has_few_rows(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return a.size(0) <= kernels::most_few_rows && b.stride(0) == 1 && b.stride(1) >= b.size(0) && out.stride(1) == 1;
}

at::Tensor part(const at::Tensor& x, std::int64_t dim, std::int64_t begin, std::int64_t most) {
  return x.narrow(dim, begin, std::min(most, x.size(dim) - begin));
}

/// a b, or sum + a b if `sum` is defined, in fp32.
at::Tensor widened(const at::Tensor& a, const at::Tensor& b, at::Tensor sum) {
  std::int64_t begin = 0;
  do {
    const at::Tensor wide_a = part(a, 1, begin, length).to(at::kFloat),
                     wide_b = part(b, 0, begin, length).to(at::kFloat);
    sum = sum.defined() ? sum.addmm_(wide_a, wide_b) : at::mm(wide_a, wide_b);
    begin += length;
  } while (begin < a.size(1) && !sum.is_meta());
  return sum;
}

// On the meta device the first block suffices to measure memory.
void widened_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  for (std::int64_t row = 0; row < a.size(0); row += side)
    for (std::int64_t column = 0; column < b.size(1); column += side) {
      const at::Tensor block = part(part(out, 0, row, side), 1, column, side);
      block.copy_(widened(part(a, 0, row, side), part(b, 1, column, side), add ? block.to(at::kFloat) : at::Tensor()));
      if (out.is_meta()) return;
    }
}

void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  if (widened_on_cpu(a.scalar_type())) return widened_into(out, a, b, add);
  composed::matrix_product_into(out, a, b, add);
}

/// Libraries choose the order of a sum by the product's size and the number of threads. Blocks therefore depend only on
/// sizes, and there are enough of them for several threads. In a team each thread multiplies alone, so a single block
/// gets a team too.
void multiply_in_blocks(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  const Cut rows(out.size(0), side), columns(out.size(1), rows.blocks > 1 || out.size(1) >= 4 * side ? side : side / 2);
  const std::int64_t blocks = rows.blocks * columns.blocks;
  at::parallel_for(0, std::max<std::int64_t>(blocks, 2), 1, [&](std::int64_t begin, std::int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView no_graph;
    const OneThread alone;
    for (std::int64_t i = begin; i < std::min(end, blocks); ++i) {
      const std::int64_t row = i % rows.blocks * rows.size, column = i / rows.blocks * columns.size;
      multiply(part(part(out, 0, row, rows.size), 1, column, columns.size), part(a, 0, row, rows.size),
               part(b, 1, column, columns.size), add);
    }
  });
}

// LibTorch casts the addend, so rows are added one by one to avoid casting the whole product.
void product_into_wider(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  for (std::int64_t row = 0; row < a.size(0); row += rows_widened_at_once) {
    const at::Tensor product = matrix_product(part(a, 0, row, rows_widened_at_once), b).to(out.scalar_type());
    const at::Tensor rows = part(out, 0, row, rows_widened_at_once);
    add ? rows.add_(product) : rows.copy_(product);
  }
}

}  // namespace

bool widened_on_cpu(at::ScalarType type) {
  static const bool bf16 = !oneDNN_multiplies("mkldnn::_is_mkldnn_bf16_supported");
  static const bool fp16 = !oneDNN_multiplies("mkldnn::_is_mkldnn_fp16_supported");
  return (type == at::kBFloat16 && bf16) || (type == at::kHalf && fp16);
}

void cpu::matrix_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  if (const PackedMatrix* packed = PackedMatrix::of(b)) return packed->multiply_into(out, a, add);
  const bool same_type = out.scalar_type() == a.scalar_type();
  if (same_type && has_few_rows(out, a, b) && with_kernel_type(a.scalar_type(), [&]<class T>(T) {
        few_rows_into<T, T>(out, a.to(at::kFloat).contiguous(), read_of<T>(b), b.stride(1), add);
      }))
    return;
  if (tiled_product_into(out, a, b, add)) return;
  if (!same_type) return composed::matrix_product_into(out, a, b, add);
  if (at::globalContext().deterministicAlgorithms() && !out.is_meta() && out.numel() > 0)
    return multiply_in_blocks(out, a, b, add);
  multiply(out, a, b, add);
}

void composed::matrix_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  at::Tensor into = out;
  if (out.scalar_type() != a.scalar_type())
    product_into_wider(out, a, b, add);
  else if (add)
    into.addmm_(a, b);
  else
    at::mm_out(into, a, b);
}

at::Tensor composed::matrix_product(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& residual,
                                    const std::optional<at::Tensor>& bias) {
  at::Tensor out =
      residual ? residual->clone(at::MemoryFormat::Contiguous) : at::empty({a.size(0), b.size(1)}, a.options());
  zero::matrix_product_into(out, a, b, residual.has_value());
  if (bias) out.add_(*bias);
  return out;
}

at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  matrix_product_into(out, a, b);
  return out;
}

}  // namespace zero
