#include "zero/report/thinning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace zero {
namespace {

using ::testing::ElementsAre;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

TEST(Thinning, FewPointsHaveABucketEach) {
  EXPECT_THAT(bucket_edges(3, 8), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(bucket_edges(0, 8), ElementsAre(0));
}

TEST(Thinning, BucketsCoverAllPointsInOrder) {
  for (const std::size_t most : {8, 9, 100, 2000})
    for (const std::size_t points : {most + 1, 3 * most, std::size_t(1'000'000)}) {
      const BucketEdges edges = bucket_edges(points, most);
      EXPECT_LE(edges.size(), most + 1) << points << " in " << most;
      EXPECT_GE(edges.size(), most / 2) << points << " in " << most;
      EXPECT_EQ(edges.front(), 0);
      EXPECT_EQ(edges[1], 1) << "the first point is alone";
      EXPECT_EQ(edges[edges.size() - 2], points - 1) << "the last point is alone";
      EXPECT_EQ(edges.back(), points);
      EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end()));
      EXPECT_EQ(std::adjacent_find(edges.begin(), edges.end()), edges.end()) << "no bucket is empty";
    }
}

TEST(Thinning, TheBeginningStaysVisibleOnALogarithmicAxis) {
  const BucketEdges edges = bucket_edges(1'000'000, 400);
  EXPECT_GE(std::count_if(edges.begin(), edges.end(), [](std::size_t edge) { return edge < 1000; }), 50);
}

TEST(Thinning, KeepsTheSmallestAndLargestValue) {
  std::vector<double> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(double(i));
  values[77'777] = 1e9;
  values[12'345] = -1e9;
  const ThinnedSeries series = thinned(values, bucket_edges(values.size(), 200));
  EXPECT_EQ(*std::max_element(series.high.begin(), series.high.end()), 1e9);
  EXPECT_EQ(*std::min_element(series.low.begin(), series.low.end()), -1e9);
  EXPECT_EQ(series.mean.front(), values.front());
  EXPECT_EQ(series.mean.back(), values.back());
}

TEST(Thinning, AveragesABucket) {
  const std::vector<double> values{1, 2, 3, 10};
  const ThinnedSeries series = thinned(values, {0, 3, 4});
  EXPECT_THAT(series.mean, ElementsAre(2, 10));
  EXPECT_THAT(series.low, ElementsAre(1, 10));
  EXPECT_THAT(series.high, ElementsAre(3, 10));
}

TEST(Thinning, CountsValuesThatAreNotFinite) {
  const std::vector<double> values{none, std::numeric_limits<double>::infinity(), 4, none, 6};
  const ThinnedSeries series = thinned(values, {0, 2, 5});
  EXPECT_EQ(series.not_finite, 3);
  EXPECT_TRUE(std::isnan(series.mean[0]) && std::isnan(series.low[0]));
  EXPECT_EQ(series.mean[1], 5);
}

TEST(Thinning, HugeValuesDoNotOverflow) {
  const std::vector<double> values{1e308, 1e308, 1e308};
  EXPECT_EQ(thinned(values, {0, 3}).mean[0], 1e308);
}

}  // namespace
}  // namespace zero
