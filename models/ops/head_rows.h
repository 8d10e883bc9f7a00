#pragma once
// Helpers for the head's matrix products: they select rows, divide them into chunks, and accumulate products.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

namespace zero {

/// The indices of the rows of x [tokens, hidden] whose target is trained. An undefined result means all rows: the
/// cross-entropy then skips untrained ones, so the host need not wait for a count. On the meta device, where targets
/// have no data, returns all rows or, if `some_on_meta`, some.
at::Tensor trained_rows(const at::Tensor& x, const at::Tensor& targets, bool some_on_meta);

/// The most bytes that the logits of one chunk of tokens may take.
inline constexpr std::int64_t default_logits_bytes = 32 << 20;
/// The same on a GPU, where small products do not fill the device.
inline constexpr std::int64_t default_device_logits_bytes = 1 << 30;

/// The number of tokens per chunk, for `rows` tokens whose logits take `row_bytes` each. Chunks have equal sizes,
/// except that the last may be shorter. Long chunks are whole tiles of a matrix product.
constexpr std::int64_t logits_chunk_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t logits_bytes) {
  constexpr std::int64_t tile = 128;
  const std::int64_t most = std::max<std::int64_t>(16, logits_bytes / row_bytes), grain = most < tile ? 1 : tile,
                     whole = most / grain * grain, chunks = std::max<std::int64_t>(1, (rows + whole - 1) / whole);
  return (rows + chunks * grain - 1) / (chunks * grain) * grain;
}

/// The bounds of consecutive chunks of rows. A row's logits take `row_bytes`, a chunk's at most `most` bytes (0: the
/// device's default). On the meta device, returns only two full chunks and the last one, which suffice to measure
/// memory.
std::vector<std::int64_t> logits_chunks(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most);

/// sum [m, n] += a^T b for a [k, m], b [k, n]. `sum` may have a wider type than the factors.
void add_product_(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace zero
