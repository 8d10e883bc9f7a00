#include "zero/slot_sizes.h"

#include <algorithm>

namespace zero {

SlotSizes slot_sizes(const Chain& chain, const std::vector<GroupSpec>& specs, const std::vector<FlatLayout>& layouts, const SlotOptions& options) {
  SlotSizes sizes;
  std::int64_t gathered = 0, borrowing = 0, reduced = 0;
  for (std::size_t g = 0; g < specs.size(); ++g) {
    const std::int64_t bytes = layouts[g].numel() * options.element_bytes;
    if (specs[g].spans_model()) {
      sizes.gather.push_back(bytes);
      sizes.reduce.push_back(bytes);
      continue;
    }
    if (specs[g].trainable) reduced = std::max(reduced, bytes);
    if (!specs[g].trainable && options.keep_frozen) continue;
    gathered = std::max(gathered, bytes);
    if (!chain[specs[g].unit]->borrowed().empty()) borrowing = std::max(borrowing, bytes);
  }
  const std::size_t depth = options.overlap ? 2 : 1;
  if (gathered > 0) sizes.gather.insert(sizes.gather.end(), depth, gathered);
  if (borrowing > 0) sizes.gather.push_back(borrowing);
  if (reduced > 0) sizes.reduce.insert(sizes.reduce.end(), depth, reduced);
  return sizes;
}

}  // namespace zero
