#pragma once
// BlockKinds: a flat vector in blocks of equal size, each of one kind. Block formats store each kind in its own way.
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

  /// A block has the kind of the tensors in it. If their kinds differ, the block is plain. Padding has the kind of the
  /// tensor before it. The layout's length is a multiple of `block` elements.
  BlockKinds(const FlatLayout& layout, std::int64_t block, const std::function<int(const TensorSpec&)>& kind_of);

  /// Blocks [begin, end) as ranges of one kind each, ascending and without gaps.
  std::vector<BlockRange> within(std::int64_t begin, std::int64_t end) const;

 private:
  void append(const BlockRange& range);
  std::vector<BlockRange> ranges_;  // adjacent ranges differ in kind
};

}  // namespace zero
