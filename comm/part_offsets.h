#pragma once
// The offset of each rank's part in an all_to_all tensor.
#include <cstdint>
#include <numeric>
#include <vector>

namespace zero {

/// The number of elements before each rank's part, followed by the sum of all counts.
inline std::vector<std::int64_t> part_offsets(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> offsets(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

}  // namespace zero
