// Prefetched gathers, and reductions on a communicator of their own, change the order of calls and no result. Simulated
// ranks finish every call at once: this tests slots, states and order, not speed.
#include <gtest/gtest.h>

#include "tests/sim/training_run.h"

namespace zero::testing {
namespace {

RunOptions options_for(int stage, bool tied, int degree, int recompute_every, int micro_batches) {
  RunOptions options;
  options.config = small_config(tied);
  options.stage = stage;
  options.ranks = 4;
  options.shard_degree = degree;
  options.recompute_every = recompute_every;
  options.micro_batches = micro_batches;
  options.global_batch = 8;
  options.steps = 4;
  return options;
}

class Overlap : public ::testing::TestWithParam<std::tuple<int, bool, int, int>> {};

TEST_P(Overlap, ChangesNoBit) {
  const auto [stage, tied, degree, recompute_every] = GetParam();
  RunOptions options = options_for(stage, tied, degree, recompute_every, 2);
  const RunResult plain = run_training(options);
  options.overlap = true;
  const RunResult ahead = run_training(options);
  EXPECT_EQ(ahead.losses, plain.losses);
  EXPECT_EQ(ahead.norms, plain.norms);
  ASSERT_EQ(ahead.weights.size(), plain.weights.size());
  for (const auto& [name, value] : plain.weights) EXPECT_TRUE(at::equal(value, ahead.weights.at(name))) << name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Overlap,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Bool(), ::testing::Values(0, 2),
                                            ::testing::Values(0, 1)));

// In backward the gather of the unit before runs ahead of the sum of the unit at hand, and each kind keeps to its
// communicator.
TEST(Overlap, GathersTheUnitBeforeAheadOfTheSum) {
  RunOptions options = options_for(3, false, 0, 0, 1);
  options.steps = 1;
  options.overlap = true;
  const RunResult result = run_training(options);
  std::vector<std::string> order;
  for (const SimCall& call : result.calls[0]) {
    const Phase phase = call.call.tag.phase;
    if (phase != Phase::forward && phase != Phase::backward && phase != Phase::reduce) continue;
    order.push_back(std::string(name_of(phase)) + std::to_string(call.call.tag.unit));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"forward0", "forward1", "forward2", "forward3", "backward2", "reduce3",
                                             "backward1", "reduce2", "reduce1", "reduce0"}));
}

// This is the case of a pipeline: each micro-batch has its own context, whatever its backward recomputes or draws.
class PassesUnderWay : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(PassesUnderWay, ChangeNoBit) {
  const auto [stage, under_way, lora] = GetParam();
  for (const int recompute_every : {0, 1}) {
    RunOptions options = options_for(stage, !lora, 0, recompute_every, 4);
    options.ranks = 2;
    if (lora) {
      options.lora.emplace().dropout = 0.2;
      options.lora->target_modules = {"q_proj", "down_proj"};
    }
    const RunResult one = run_training(options);
    options.under_way = under_way;
    const RunResult several = run_training(options);
    options.overlap = true;
    const RunResult ahead = run_training(options);
    EXPECT_EQ(several.losses, one.losses);
    EXPECT_EQ(several.norms, one.norms);
    EXPECT_EQ(ahead.norms, one.norms);
    for (const auto& [name, value] : one.weights) EXPECT_TRUE(at::equal(value, several.weights.at(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PassesUnderWay,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Values(2, 4), ::testing::Bool()));

}  // namespace
}  // namespace zero::testing
