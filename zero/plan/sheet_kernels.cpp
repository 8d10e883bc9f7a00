#include "zero/plan/sheet_kernels.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"

namespace zero {
namespace {

// Tensor cores of these GPUs halve their rate in TF32, which fp32 products use at most.
double rate_of(at::ScalarType type, double bf16) { return type == at::kFloat ? bf16 / 2 : bf16; }

// The share of a GPU that tiles of 128 x 128 fill, of products with few of them.
double filled(double rows, double columns) {
  constexpr double tile = 128, processors = 132;
  const double tiles = std::ceil(rows / tile) * std::ceil(columns / tile);
  return tiles / (std::ceil(tiles / processors) * processors);
}

}  // namespace

double AttentionWork::flops() const {
  const double pairs = window > 0 && window < length
                           ? double(window) * double(length) - double(window) * double(window) / 2
                           : double(length) * double(length + 1) / 2;
  return 4.0 * double(batch) * double(heads) * double(head_dim) * pairs;
}

double bytes_of(RowKernel kernel, at::ScalarType type) {
  const double size = double(c10::elementSize(type));
  switch (kernel) {
    case RowKernel::norm:
      return 2 * size;
    case RowKernel::norm_backward:
      return 4 * size;
    case RowKernel::activation:
      return 3 * size;
    case RowKernel::activation_backward:
      return 5 * size;
    case RowKernel::loss:
      return 3 * size;
  }
  return 0;
}

double SheetKernels::product(const ProductShape& shape, ProductPass pass) {
  const double m = double(shape.rows), k = double(shape.in), n = double(shape.out);
  const double result_rows = pass == ProductPass::weight_gradient ? n : m,
               result_columns = pass == ProductPass::forward ? n : k;
  const double flops =
      rate_of(shape.type, sheet_.flops) * shares_.products * std::max(0.25, filled(result_rows, result_columns));
  const double bytes = (m * k + k * n + m * n) * double(c10::elementSize(shape.type));
  return std::max({shape.flops() / flops, stream(bytes), shares_.launch});
}

double SheetKernels::attention(const AttentionWork& work, bool backward) {
  // FlashAttention-2 (Dao 2023): backward has five products, of which forward has two.
  const double share = backward ? shares_.attention_backward : shares_.attention_forward;
  const double flops = work.flops() * (backward ? 2.5 : 1);
  const double bytes = double(work.batch * work.length * work.head_dim * (2 * work.heads + 2 * work.kv_heads)) *
                       double(c10::elementSize(work.type)) * (backward ? 2.5 : 1);
  return std::max({flops / (rate_of(work.type, sheet_.flops) * share), stream(2 * bytes), shares_.launch});
}

double SheetKernels::rows(RowKernel kernel, std::int64_t rows, std::int64_t width, at::ScalarType type) {
  return std::max(shares_.launch, stream(double(rows) * double(width) * bytes_of(kernel, type)));
}

std::vector<std::string> SheetKernels::sources() const {
  const auto percent = [](double share) { return text(int(std::lround(share * 100)), " %"); };
  return {text("products: ", percent(shares_.products), " (assumed) of ", sheet_.flops / 1e12,
               " TFLOP/s in bf16 (data sheet), less where tiles do not fill the GPU"),
          text("attention: ", percent(shares_.attention_forward), " forward and ", percent(shares_.attention_backward),
               " backward (assumed) of the same"),
          text("memory: ", percent(shares_.memory), " (assumed) of ", sheet_.memory_rate / 1e12, " TB/s (data sheet)"),
          "data sheet: " + sheet_.source};
}

}  // namespace zero
