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

std::vector<std::int64_t> stream_of(SampleOrderOptions options, std::int64_t steps) {
  SampleOrder order(std::move(options));
  std::vector<std::int64_t> stream;
  for (std::int64_t step = 0; step < steps; ++step)
    for (const std::int64_t row : order.rows_of_step(step)) stream.push_back(row);
  return stream;
}

TEST(SampleOrder, SourcesTakeTurnsByTheirWeights) {
  EXPECT_THAT(stream_of({.rows = 5, .global_batch_size = 4, .shuffle = false, .sources = {{3, 3}, {2, 1}}}, 3),
              ElementsAre(0, 1, 2, 3, 0, 1, 2, 4, 0, 1, 2, 3));
}

TEST(SampleOrder, ASourceWithoutOthersHasTheOrderOfAllRows) {
  EXPECT_EQ(stream_of({.rows = 7, .global_batch_size = 3, .seed = 4, .sources = {{7, 0.5}}}, 9),
            stream_of({.rows = 7, .global_batch_size = 3, .seed = 4}, 9));
}

// Each repetition of a small source holds every row once and is shuffled anew, and sources of one size differ.
TEST(SampleOrder, EachSourceHasEpochsOfItsOwn) {
  const std::vector<std::int64_t> stream =
      stream_of({.rows = 24, .global_batch_size = 5, .seed = 3, .sources = {{12, 1}, {12, 4}}}, 48);
  std::vector<std::int64_t> first, second;
  for (const std::int64_t row : stream) (row < 12 ? first : second).push_back(row < 12 ? row : row - 12);
  ASSERT_EQ(first.size(), 48U);
  ASSERT_EQ(second.size(), 192U);
  for (const std::vector<std::int64_t>* source : {&first, &second}) {
    std::vector<std::vector<std::int64_t>> epochs;
    for (auto begin = source->begin(); begin != source->end(); begin += 12) {
      std::vector<std::int64_t> epoch(begin, begin + 12), sorted = epoch;
      std::sort(sorted.begin(), sorted.end());
      for (std::int64_t i = 0; i < 12; ++i) ASSERT_EQ(sorted[std::size_t(i)], i);
      for (const auto& before : epochs) EXPECT_NE(epoch, before);
      epochs.push_back(epoch);
    }
  }
  EXPECT_FALSE(std::equal(first.begin(), first.begin() + 12, second.begin()));
}

TEST(SampleOrder, WeightedOrdersAreFunctionsOfTheStepAloneToo) {
  const SampleOrderOptions options{
      .rows = 30, .global_batch_size = 8, .seed = 1, .sources = {{11, 0.31}, {16, 0.52}, {3, 0.17}}};
  SampleOrder forward(options), backward(options);
  std::vector<std::vector<std::int64_t>> steps;
  for (int step = 0; step < 40; ++step) steps.push_back(forward.rows_of_step(step));
  for (int step = 39; step >= 0; --step) EXPECT_EQ(backward.rows_of_step(step), steps[static_cast<std::size_t>(step)]);
}

TEST(SampleOrder, SaysHowOftenEachSourceIsSeen) {
  const SampleOrder order({.rows = 110, .global_batch_size = 10, .sources = {{100, 7}, {10, 3}}});
  EXPECT_EQ(order.steps_of(1), 11) << "an epoch is as many rows as there are";
  const auto uses = order.use_after(20);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].rows, 100);
  EXPECT_DOUBLE_EQ(uses[0].share, 0.7);
  EXPECT_DOUBLE_EQ(uses[0].epochs, 1.4);
  EXPECT_DOUBLE_EQ(uses[1].epochs, 6);
}

}  // namespace
}  // namespace zero
