#include "zero/core/buffers/block_kinds.h"

#include <algorithm>

namespace zero {

BlockKinds::BlockKinds(const FlatLayout& layout, std::int64_t block,
                       const std::function<int(const TensorSpec&)>& kind_of) {
  for (const FlatTensor& tensor : layout.tensors()) {
    const int kind = kind_of(tensor.spec);
    std::int64_t first = tensor.offset / block;
    const std::int64_t last = (tensor.offset + tensor.spec.numel() + block - 1) / block;
    if (!ranges_.empty() && first < ranges_.back().end && ranges_.back().kind != kind) {  // the block that both share
      --ranges_.back().end;
      append({first, first + 1, plain});
      ++first;
    }
    append({first, last, kind});
  }
  append({layout.numel() / block, layout.numel() / block, plain});
}

// There may be padding between the last range and this one.
void BlockKinds::append(const BlockRange& range) {
  if (ranges_.empty()) return ranges_.push_back(range);
  BlockRange& back = ranges_.back();
  if (back.begin == back.end) {  // its only block had tensors of several kinds
    ranges_.pop_back();
    return append(range);
  }
  back.end = std::max(back.end, range.begin);
  if (range.end <= back.end) return;
  if (back.kind == range.kind)
    back.end = range.end;
  else
    ranges_.push_back({back.end, range.end, range.kind});
}

std::vector<BlockRange> BlockKinds::within(std::int64_t begin, std::int64_t end) const {
  std::vector<BlockRange> parts;
  for (const BlockRange& range : ranges_) {
    const BlockRange part{std::max(begin, range.begin), std::min(end, range.end), range.kind};
    if (part.begin < part.end) parts.push_back(part);
  }
  return parts;
}

}  // namespace zero
