#include "comm/agreement/rank_list.h"

#include <algorithm>

namespace zero {

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t most = 8;
  std::string words = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i)
    words += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return words + (ranks.size() > most ? ", ..." : "");
}

}  // namespace zero
