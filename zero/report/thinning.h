#pragma once
// Thinning: a long series as few buckets that keep what a drawing shows of it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// Where buckets of neighbouring points begin, and the number of points at the end.
using BucketEdges = std::vector<std::size_t>;

/// Divides `points` into at most `most` buckets (4 or more). Up to `most` points have a bucket each. Otherwise half of
/// the edges are evenly apart and half by equal factors, so that the beginning stays visible on a logarithmic axis. The
/// first and the last point have a bucket of their own.
BucketEdges bucket_edges(std::size_t points, std::size_t most);

/// One number a bucket. NaN where a bucket has no finite value.
struct ThinnedSeries {
  std::vector<double> mean, low, high;
  std::int64_t not_finite = 0;  // values in all buckets together
};

ThinnedSeries thinned(std::span<const double> values, const BucketEdges& edges);

}  // namespace zero
