// Stages agree: with each other, with any number of ranks, micro-batches and shard groups, and with themselves.
#include <gtest/gtest.h>

#include "tests/sim/matrix.h"
#include "tests/sim/training_run.h"

namespace zero::testing {
namespace {

void expect_equal_bits(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (const auto& [name, weight] : a.weights) EXPECT_TRUE(at::equal(weight, b.weights.at(name))) << name;
}

class StageParity : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

// Against one rank that sees the whole batch at once, in fp64.
TEST_P(StageParity, EqualsOneRankWithTheWholeBatch) {
  const auto [stage, ranks, tied] = GetParam();
  RunOptions reference;
  reference.config = small_config(tied);
  reference.steps = 4;
  static std::map<bool, RunResult> references;  // of untied and of tied weights
  if (!references.contains(tied)) references[tied] = run_training(reference);
  const RunResult& expected = references[tied];
  ASSERT_LT(expected.losses.back(), expected.losses.front());
  for (int micro_batches : {1, 2}) {
    for (int degree = 1; degree <= ranks; ++degree) {
      if (ranks % degree) continue;
      RunOptions options = reference;
      options.stage = stage;
      options.ranks = ranks;
      options.micro_batches = micro_batches;
      options.shard_degree = degree;
      for (const auto& [every, attention] : {std::pair(0, false), std::pair(1, false), std::pair(0, true)}) {
        options.recompute_every = every;
        options.recompute_attention = attention;
        EXPECT_LT(largest_difference(expected, run_training(options)), 1e-12)
            << micro_batches << " micro-batches, shard_degree " << degree << ", recompute " << every
            << (attention ? ", attention" : "");
      }
    }
  }
}

TEST_P(StageParity, RepeatsBitForBitWhateverTheSchedule) {
  const auto [stage, ranks, tied] = GetParam();
  RunOptions options;
  options.config = small_config(tied);
  options.stage = stage;
  options.ranks = ranks;
  options.compute = at::kBFloat16;
  options.master = at::kFloat;
  options.steps = 4;
  const RunResult first = run_training(options);
  options.schedule_seed = 99;
  expect_equal_bits(first, run_training(options));
}

INSTANTIATE_TEST_SUITE_P(Matrix, StageParity,
                         ::testing::ValuesIn(pairs_of(std::vector{0, 1, 2, 3}, std::vector{1, 2, 3, 4},
                                                      std::vector<bool>{false, true})),
                         [](const auto& info) {
                           return "stage" + std::to_string(std::get<0>(info.param)) + "_np" +
                                  std::to_string(std::get<1>(info.param)) + (std::get<2>(info.param) ? "_tied" : "");
                         });

// With one micro-batch every stage sums the same numbers in the same order.
class StageBits : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(StageBits, StagesAgreeToTheLastBit) {
  for (int ranks : {2, 3, 4}) {
    RunOptions options;
    options.config = small_config(false);
    options.ranks = ranks;
    options.compute = GetParam();
    options.master = at::kFloat;
    const RunResult stage0 = run_training(options);
    for (int stage : {1, 2, 3}) {
      options.stage = stage;
      SCOPED_TRACE(::testing::Message() << "stage " << stage << ", " << ranks << " ranks");
      expect_equal_bits(stage0, run_training(options));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StageBits, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

}  // namespace
}  // namespace zero::testing
