#pragma once
// WordToken: an id, and the bytes of the word that it stands for. No LibTorch.
#include <cstdint>
#include <vector>

namespace zero {

struct WordToken {
  std::int32_t id = 0;
  std::uint32_t begin = 0, end = 0;
};
using WordTokens = std::vector<WordToken>;

}  // namespace zero
