#pragma once
// RankList: ranks as messages name them.
#include <string>
#include <vector>

namespace zero {

/// "rank 3"; "ranks 1, 2, 5"; of more than eight the first ones, and "...".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace zero
