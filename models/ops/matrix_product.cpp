#include "models/ops/matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "models/ops/backends.h"
#include "models/ops/kernels/few_rows.h"
#include "models/ops/row_dispatch.h"

namespace zero {

namespace {

/// LibTorch's own question, by which it chooses: "mkldnn::_is_mkldnn_bf16_supported".
bool oneDNN_multiplies(const char* question) {
  const auto op = c10::Dispatcher::singleton().findSchema({question, ""});
  return op && op->typed<bool()>().call();
}

/// Elements of a block in fp32: 4 MiB, which stays in a cache.
constexpr std::int64_t block_elements = std::int64_t{1} << 20;

std::int64_t rows_of_block(std::int64_t row) {
  return std::max<std::int64_t>(64, block_elements / std::max<std::int64_t>(row, 1));
}

/// Whether b is a weight's transpose, and a few rows that are multiplied as fast as it is read.
bool has_few_rows(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return a.size(0) <= kernels::most_few_rows && b.stride(0) == 1 && b.stride(1) >= b.size(0) && out.stride(1) == 1;
}

template <class T>
void few_rows_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  const at::Tensor x = a.to(at::kFloat).contiguous();
  const kernels::FewRows<T> product{read_of<float>(x), read_of<T>(b), data_of<T>(out), a.size(0),
                                    a.size(1),         b.stride(1),   out.stride(0),   add};
  by_rows(out, b.size(1), a.size(1),
          [&](std::int64_t begin, std::int64_t end) { kernels::few_rows_product(product, begin, end); });
}

// Blocks of whole rows of a and columns of b: a sum over k is never cut, so that blocks do not show in the result.
void widened_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  const std::int64_t most = rows_of_block(a.size(1));
  for (std::int64_t row = 0; row < a.size(0); row += most) {
    const std::int64_t rows = std::min(most, a.size(0) - row);
    const at::Tensor wide_a = a.narrow(0, row, rows).to(at::kFloat);
    for (std::int64_t column = 0; column < b.size(1); column += most) {
      const std::int64_t columns = std::min(most, b.size(1) - column);
      const at::Tensor wide_b = b.narrow(1, column, columns).to(at::kFloat);
      const at::Tensor block = out.narrow(0, row, rows).narrow(1, column, columns);
      block.copy_(add ? at::addmm(block.to(at::kFloat), wide_a, wide_b) : at::mm(wide_a, wide_b));
    }
  }
}

}  // namespace

bool widened_on_cpu(at::ScalarType type) {
  static const bool bf16 = !oneDNN_multiplies("mkldnn::_is_mkldnn_bf16_supported");
  static const bool fp16 = !oneDNN_multiplies("mkldnn::_is_mkldnn_fp16_supported");
  return (type == at::kBFloat16 && bf16) || (type == at::kHalf && fp16);
}

void cpu::matrix_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  if (has_few_rows(out, a, b) &&
      with_kernel_type(a.scalar_type(), [&](auto type) { few_rows_into<decltype(type)>(out, a, b, add); }))
    return;
  if (widened_on_cpu(a.scalar_type())) return widened_into(out, a, b, add);
  composed::matrix_product_into(out, a, b, add);
}

void composed::matrix_product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool add) {
  at::Tensor into = out;
  if (add)
    into.addmm_(a, b);
  else
    at::mm_out(into, a, b);
}

at::Tensor matrix_product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  matrix_product_into(out, a, b);
  return out;
}

}  // namespace zero
