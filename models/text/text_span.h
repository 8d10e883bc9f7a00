#pragma once
// TextSpan: a part of a text. Does not include LibTorch.
#include <cstddef>

namespace zero {

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const TextSpan&) const = default;
};

}  // namespace zero
