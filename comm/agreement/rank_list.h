#pragma once
// RankList: formats ranks for messages.
#include <string>
#include <vector>

namespace zero {

/// "rank 3" or "ranks 1, 2, 5". If there are more than eight, lists the first eight and "...".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace zero
