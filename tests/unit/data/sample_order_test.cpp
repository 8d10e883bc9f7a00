#include "zero/data/rows/sample_order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace zero {
namespace {

using ::testing::ElementsAre;

TEST(Permutation, IsThisOneOnEveryPlatform) {
  EXPECT_THAT(permutation(10, 0, 0), ElementsAre(1, 2, 5, 7, 0, 8, 4, 3, 9, 6));
  EXPECT_THAT(permutation(10, 7, 3), ElementsAre(9, 1, 4, 3, 7, 0, 5, 8, 6, 2));
}

TEST(Permutation, HoldsEachNumberOnceAndDiffersBySeedAndEpoch) {
  const auto a = permutation(1000, 1, 0);
  auto sorted = a;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i);
  EXPECT_NE(a, permutation(1000, 1, 1));
  EXPECT_NE(a, permutation(1000, 2, 0));
  EXPECT_NE(permutation(1000, 1, 2), permutation(1000, 2, 1));
  EXPECT_EQ(a, permutation(1000, 1, 0));
}

// Chi-square over the 24 orders of 4 things; 23 degrees of freedom, 60 is beyond the 0.004 % quantile.
TEST(Permutation, FavoursNoOrder) {
  std::map<std::vector<std::uint32_t>, int> seen;
  constexpr int draws = 24000;
  for (int epoch = 0; epoch < draws; ++epoch) ++seen[permutation(4, 5, static_cast<std::uint64_t>(epoch))];
  ASSERT_EQ(seen.size(), 24U);
  double chi = 0;
  for (const auto& [order, count] : seen) chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi, 60);
}

TEST(SampleOrder, LeftOverRowsComeFirstInTheStepThatTheNextEpochCompletes) {
  SampleOrder order({.rows = 5, .global_batch_size = 3, .shuffle = false});
  EXPECT_THAT(order.rows_of_step(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(order.rows_of_step(1), ElementsAre(3, 4, 0));
  EXPECT_THAT(order.rows_of_step(2), ElementsAre(1, 2, 3));
}

TEST(SampleOrder, EachEpochOfTheShuffledOrderHoldsEveryRowOnce) {
  SampleOrder order({.rows = 7, .global_batch_size = 4, .seed = 3});
  std::vector<std::int64_t> stream;
  for (int step = 0; step < 7; ++step)
    for (const std::int64_t row : order.rows_of_step(step)) stream.push_back(row);
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> part(stream.begin() + 7 * epoch, stream.begin() + 7 * (epoch + 1));
    const auto expected = permutation(7, 3, static_cast<std::uint64_t>(epoch));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin(), expected.end()));
  }
}

TEST(SampleOrder, IsAFunctionOfTheStepAlone) {
  const SampleOrderOptions options{.rows = 11, .global_batch_size = 8, .seed = 1};
  SampleOrder forward(options), backward(options);
  std::vector<std::vector<std::int64_t>> steps;
  for (int step = 0; step < 20; ++step) steps.push_back(forward.rows_of_step(step));
  for (int step = 19; step >= 0; --step) EXPECT_EQ(backward.rows_of_step(step), steps[static_cast<std::size_t>(step)]);
}

TEST(SampleOrder, AStepMayHoldSeveralEpochs) {
  SampleOrder order({.rows = 2, .global_batch_size = 5, .shuffle = false});
  EXPECT_THAT(order.rows_of_step(0), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(order.rows_of_step(1), ElementsAre(1, 0, 1, 0, 1));
}

TEST(SampleOrder, StepsOfEpochs) {
  const SampleOrder order({.rows = 100, .global_batch_size = 29});
  EXPECT_EQ(order.steps_of(1), 3);
  EXPECT_EQ(order.steps_of(2), 6);
  EXPECT_EQ(order.steps_of(0.29), 1);
  EXPECT_EQ(order.steps_of(0.58), 2);  // 0.58 x 100 is 57.999... in binary
  EXPECT_EQ(order.steps_of(0.01), 1);
  EXPECT_THROW(SampleOrder({.rows = 0}), InputError);
}

}  // namespace
}  // namespace zero
