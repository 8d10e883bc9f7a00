#include "zero/report/thinning.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zero {

BucketEdges bucket_edges(std::size_t points, std::size_t most) {
  BucketEdges edges;
  if (points <= most) {
    for (std::size_t i = 0; i <= points; ++i) edges.push_back(i);
    return edges;
  }
  edges = {0, 1, points - 1, points};
  const std::size_t each = (most - 3) / 2;
  for (std::size_t i = 1; i <= each; ++i) {
    const double share = double(i) / double(each + 1);
    edges.push_back(std::size_t(share * double(points)));
    edges.push_back(std::size_t(std::pow(double(points), share)));
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

ThinnedSeries thinned(std::span<const double> values, const BucketEdges& edges) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();
  ThinnedSeries series;
  for (std::size_t b = 0; b + 1 < edges.size(); ++b) {
    double sum = 0, low = infinity, high = -infinity;
    std::int64_t finite = 0;
    for (const double value : values.subspan(edges[b], edges[b + 1] - edges[b])) {
      if (!std::isfinite(value)) {
        ++series.not_finite;
        continue;
      }
      sum += (value - sum) / double(++finite);  // the mean so far, which cannot overflow as a sum can
      low = std::min(low, value);
      high = std::max(high, value);
    }
    series.mean.push_back(finite > 0 ? std::clamp(sum, low, high) : none);
    series.low.push_back(finite > 0 ? low : none);
    series.high.push_back(finite > 0 ? high : none);
  }
  return series;
}

}  // namespace zero
