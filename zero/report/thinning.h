#pragma once
// Thinning: reduces a long series to a few buckets that keep everything that a drawing of the series shows.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// The first point of each bucket of neighbouring points, in order, and then the number of points.
using BucketEdges = std::vector<std::size_t>;

/// Divides `points` into at most `most` buckets (4 or more). If there are at most `most` points, each has its own
/// bucket. Otherwise half of the edges are evenly spaced, and half are spaced by equal factors. The beginning thus
/// stays visible on a logarithmic axis. The first and the last point have a bucket of their own.
BucketEdges bucket_edges(std::size_t points, std::size_t most);

/// One number per bucket. It is NaN if the bucket has no finite value.
struct ThinnedSeries {
  std::vector<double> mean, low, high;
  std::int64_t not_finite = 0;  // values in all buckets together
};

ThinnedSeries thinned(std::span<const double> values, const BucketEdges& edges);

}  // namespace zero
