#pragma once
// The head's products: the selection of rows, their chunks, and the sum of the chunks' products.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

namespace zero {

/// Indices of the rows of x [tokens, hidden] whose target is trained. Undefined: all rows are used, and the
/// cross-entropy skips untrained ones, so nobody waits for a count. On Meta, where targets have no data: all, or some.
at::Tensor trained_rows(const at::Tensor& x, const at::Tensor& targets, bool some_on_meta);

/// The largest logits of one chunk of tokens, in bytes.
inline constexpr std::int64_t default_logits_bytes = 32 << 20;
/// The same on a GPU, where small products do not fill the device.
inline constexpr std::int64_t default_device_logits_bytes = 1 << 30;

/// Tokens of one chunk, for `rows` tokens whose logits take `row_bytes` each. Chunks have equal sizes, in whole tiles
/// of a matrix product if they are long enough. The last one may be shorter.
constexpr std::int64_t logits_chunk_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t logits_bytes) {
  constexpr std::int64_t tile = 128;
  const std::int64_t most = std::max<std::int64_t>(16, logits_bytes / row_bytes), grain = most < tile ? 1 : tile,
                     whole = most / grain * grain, chunks = std::max<std::int64_t>(1, (rows + whole - 1) / whole);
  return (rows + chunks * grain - 1) / (chunks * grain) * grain;
}

/// Begin and end of every chunk of the rows, one chunk after another. The logits of a row take `row_bytes`, those of a
/// chunk at most `most` (0: the device's default). On Meta it returns two whole chunks and the last one, which show the
/// memory of all.
std::vector<std::int64_t> logits_chunks(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most);

/// sum [m, n] += a^T b for a [k, m], b [k, n]; the sum may be wider than the factors.
void add_product_(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace zero
