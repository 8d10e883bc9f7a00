#include "models/ops/dropout.h"

#include <ATen/ATen.h>

#include "base/philox.h"
#include "models/ops/backends.h"
#include "models/ops/row_dispatch.h"

namespace zero {

at::Tensor composed::dropout_mask(const at::Tensor& z, double dropout, std::int64_t seed, std::int64_t first_sample,
                                  std::int64_t sequence, std::int64_t first_row, std::int64_t first_column) {
  const std::int64_t rows = z.size(0), columns = z.size(1);
  const at::Device drawn_on = z.is_meta() ? at::kMeta : at::kCPU;
  const at::Tensor mask = at::empty({rows, columns}, at::TensorOptions().dtype(at::kFloat).device(drawn_on));
  const std::uint32_t threshold = dropout_threshold(dropout);
  const float kept = kept_scale(dropout);
  // a random number costs as much as a few operations
  by_rows(mask, rows, 4 * columns, [&](std::int64_t begin, std::int64_t end) {
    float* out = data_of<float>(mask);
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t row = first_row + r, sample = first_sample + row / sequence, place = row % sequence;
      const PhiloxKey key{static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(sample << 32 | place)};
      for (std::int64_t c = 0; c < columns;) {
        const auto words = philox_group(key, static_cast<std::uint64_t>((first_column + c) / 32));
        for (std::int64_t i = (first_column + c) % 32; i < 32 && c < columns; ++i, ++c)
          out[r * columns + c] = words[i / 8][i % 8] < threshold ? 0.f : kept;
      }
    }
  });
  return mask.to(z.options());
}

}  // namespace zero
