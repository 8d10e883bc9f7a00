#pragma once
// BlockKinds: a flat vector in blocks of equal size, and how each is written. Formats of blocks are cut by it.
#include <cstdint>
#include <functional>
#include <vector>

#include "zero/core/buffers/flat_layout.h"

namespace zero {

/// Blocks [begin, end) of one kind.
struct BlockRange {
  std::int64_t begin = 0, end = 0;
  int kind = 0;
};

class BlockKinds {
 public:
  static constexpr int plain = 0;

  /// A block is of the kind of the tensors in it, and plain where these differ. Padding goes with what stands before
  /// it. The layout's length is whole blocks.
  BlockKinds(const FlatLayout& layout, std::int64_t block, const std::function<int(const TensorSpec&)>& kind_of);

  /// Blocks [begin, end) in ranges of one kind, ascending, without a gap.
  std::vector<BlockRange> within(std::int64_t begin, std::int64_t end) const;

 private:
  void append(const BlockRange& range);
  std::vector<BlockRange> ranges_;  // neighbours differ in kind
};

}  // namespace zero
