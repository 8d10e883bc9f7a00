#pragma once
#include <algorithm>
#include <vector>

namespace zero {

/// The middle of the sorted values; the upper one of two. There must be values.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace zero
