#pragma once
// Offsets of the ranks' parts in a tensor of all_to_all.
#include <cstdint>
#include <numeric>
#include <vector>

namespace zero {

/// The elements before each rank's part, and the sum of all counts last.
inline std::vector<std::int64_t> part_offsets(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> offsets(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

}  // namespace zero
