#include "zero/core/buffer_sizes.h"

#include <algorithm>

#include "zero/core/buffers/nf4_codec.h"

namespace zero {
namespace {

at::ScalarType type_of(std::int64_t bytes) {
  return bytes == 2 ? at::kBFloat16 : bytes == 4 ? at::kFloat : at::kDouble;
}

}  // namespace

BufferSizes buffer_sizes(const Chain& chain, const std::vector<GroupSpec>& specs,
                         const std::vector<FlatLayout>& layouts, const BufferOptions& options) {
  BufferSizes sizes;
  std::int64_t gathered = 0, borrowing = 0, reduced = 0, codes = 0;
  for (std::size_t g = 0; g < specs.size(); ++g) {
    const std::int64_t bytes = layouts[g].numel() * options.element_bytes;
    if (specs[g].spans_model()) {
      if (options.parameters_sharded) sizes.gather.push_back(bytes);
      sizes.reduce.push_back(bytes);
      continue;
    }
    if (specs[g].trainable) reduced = std::max(reduced, bytes);
    const bool sharded = options.parameters_sharded && (specs[g].trainable || !options.keep_frozen);
    const bool quantized = options.quantize_frozen && quantizes(specs[g], int(chain.size()));
    if (!sharded && !quantized) continue;
    if (sharded && quantized)
      codes = std::max(
          codes, Nf4Codec(layouts[g], layouts[g].shards(), {type_of(options.element_bytes), options.quantize_scales})
                     .all_bytes());
    gathered = std::max(gathered, bytes);
    if (!chain[specs[g].unit]->borrowed().empty()) borrowing = std::max(borrowing, bytes);
  }
  const std::size_t depth = options.overlap ? 2 : 1;
  if (gathered > 0) sizes.gather.insert(sizes.gather.end(), depth, gathered);
  if (codes > 0) sizes.gather.insert(sizes.gather.end(), depth, codes);
  if (borrowing > 0) sizes.gather.push_back(borrowing);
  if (reduced > 0) sizes.reduce.insert(sizes.reduce.end(), depth, reduced);
  return sizes;
}

}  // namespace zero
