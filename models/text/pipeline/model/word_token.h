#pragma once
// WordToken: an id and its bytes in the word. Does not include LibTorch.
#include <cstdint>
#include <vector>

namespace zero {

struct WordToken {
  std::int32_t id = 0;
  std::uint32_t begin = 0, end = 0;
};
using WordTokens = std::vector<WordToken>;

}  // namespace zero
