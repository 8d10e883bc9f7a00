// Sums in order: losses, norms, weights and states have the same bits for every number of ranks, at every stage and in
// every layout. Optimizers and types divide the layouts among them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "comm/sum_tree.h"
#include "tests/sim/every_optimizer.h"
#include "tests/sim/matrix.h"
#include "tests/sim/offload_homes.h"
#include "tests/sim/outcome.h"
#include "zero/core/buffers/sum_ladder.h"

namespace zero::testing {
namespace reproducible_test {

constexpr int steps = 3;

/// 24 sequences: with 8 ranks three turns, which are no power of two.
RunOptions run_of(const OptimizerOptions& optimizer, at::ScalarType compute) {
  RunOptions run;
  run.config = config_for(optimizer, /*tied=*/true);
  run.optimizer = optimizer;
  run.lr = 0.1 * optimizer.lr;
  run.steps = steps;
  run.compute = compute;
  run.master = at::kFloat;
  run.ragged = true;
  run.rows_in_order = 1;
  return run;
}

std::vector<OptimizerOptions> elementwise_optimizers() {
  std::vector<OptimizerOptions> found;
  for (const OptimizerOptions& optimizer : every_optimizer())
    if (std::set<std::string>{"adamw", "adamw8bit", "sgd", "lion"}.contains(optimizer.name)) found.push_back(optimizer);
  return found;
}

class Reproducible : public ::testing::TestWithParam<std::tuple<int, at::ScalarType>> {
 protected:
  RunOptions run() const {
    return run_of(elementwise_optimizers()[std::size_t(std::get<0>(GetParam()))], std::get<1>(GetParam()));
  }

  /// Every `of`-th layout, from another one on for each optimizer and type.
  Share share(int of) const {
    return {of, 2 * std::get<0>(GetParam()) + int(std::get<1>(GetParam()) == at::kBFloat16)};
  }
};

TEST_P(Reproducible, AcrossRanksStagesAndShardGroups) {
  RunOptions options = run();
  const Outcome expected = outcome_of(options);
  Share part = share(5);
  for (const int ranks : {1, 2, 4, 8})
    for (const int stage : {0, 1, 2, 3})
      for (int degree = 1; degree <= ranks; degree *= 2) {
        if ((stage == 0 && degree < ranks) || !part.takes()) continue;
        options.ranks = ranks;
        options.stage = stage;
        options.shard_degree = degree;
        SCOPED_TRACE(::testing::Message() << ranks << " ranks, stage " << stage << ", shard_degree " << degree);
        expect_equal_bits(expected, outcome_of(options));
      }
}

TEST_P(Reproducible, AcrossRecomputationOverlapAndOffload) {
  RunOptions options = run();
  const Outcome expected = outcome_of(options);
  const std::string folder = ::testing::TempDir() + "/reproducible_" + std::to_string(::getpid());
  Share part = share(4);
  for (const auto& [ranks, stage] : {std::pair(1, 3), std::pair(2, 1), std::pair(4, 3), std::pair(8, 2)}) {
    options.ranks = ranks;
    options.stage = stage;
    SCOPED_TRACE(::testing::Message() << ranks << " ranks, stage " << stage);
    for (const auto& [every, attention, overlap] :
         {std::tuple(1, false, false), std::tuple(2, false, true), std::tuple(0, true, false)}) {
      if (!part.takes()) continue;
      options.recompute_every = every;
      options.recompute_attention = attention;
      options.overlap = overlap;
      expect_equal_bits(expected, outcome_of(options));
    }
    options.recompute_every = 0;
    options.recompute_attention = options.overlap = false;
    for (const Home home : {Home::host, Home::disk}) {
      if (!part.takes()) continue;
      options.policy_of = [&, home](int rank) { return policy_at(home, folder, rank, home == Home::host); };
      expect_equal_bits(expected, outcome_of(options));
    }
    options.policy_of = {};
  }
  std::filesystem::remove_all(folder);
}

TEST_P(Reproducible, AcrossAResumptionInAnotherLayout) {
  RunOptions options = run();
  const Outcome expected = outcome_of(options);
  struct Layout {
    int ranks, stage;
  };
  Share part = share(3);
  for (const auto& [before, after] : {std::pair(Layout{4, 3}, Layout{2, 0}), std::pair(Layout{1, 0}, Layout{8, 3}),
                                      std::pair(Layout{8, 1}, Layout{1, 0})}) {
    if (!part.takes()) continue;
    MemoryDisk disk("/disk");
    options.first_step = 0;
    options.steps = 1;
    options.ranks = before.ranks;
    options.stage = before.stage;
    const RunResult first = run_training(options, [&](Engine& engine, int, int step) {
      if (step == 1) save_at(engine, step, *disk.calls());
    });
    options.first_step = 1;
    options.steps = steps;
    options.ranks = after.ranks;
    options.stage = after.stage;
    Outcome second;
    second.result = run_training(options, [&](Engine& engine, int, int step) {
      if (step == 1) restore_from(engine, step, *disk.calls());
      if (step == steps) add_states(engine, second.states);
    });
    second.result.losses[0] = first.losses[0];
    second.result.norms[0] = first.norms[0];
    SCOPED_TRACE(::testing::Message() << "from " << before.ranks << " ranks to " << after.ranks);
    expect_equal_bits(expected, second);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Reproducible,
                         ::testing::Combine(::testing::Range(0, int(elementwise_optimizers().size())),
                                            ::testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return name_of(elementwise_optimizers()[std::size_t(std::get<0>(info.param))]) + "_" +
                                  c10::toString(std::get<1>(info.param));
                         });

// Adapters with dropout, a base of blocks, and two sequences as one.
TEST(ReproducibleLora, AcrossRanksAndStages) {
  for (const bool blocks : {false, true})
    for (const int rows : {1, 2}) {
      RunOptions options = run_of({}, at::kFloat);
      options.config = small_config(false);
      options.global_batch = 16;
      options.rows_in_order = rows;
      options.lora.emplace();
      options.lora->r = 3;
      options.lora->target_modules = {"all-linear"};
      options.lora->dropout = 0.2;
      if (blocks) options.frozen = FrozenFormat::in_nf4(false);
      const Outcome expected = outcome_of(options);
      for (const auto& [ranks, stage] : {std::pair(2, 3), std::pair(4, 1), std::pair(8, 3), std::pair(8, 0)}) {
        options.ranks = ranks;
        options.stage = stage;
        SCOPED_TRACE(::testing::Message() << ranks << " ranks, stage " << stage << ", rows " << rows);
        expect_equal_bits(expected, outcome_of(options));
      }
    }
}

// 210 sequences divide by all of them.
TEST(ReproducibleRanks, MayBeAnyNumber) {
  RunOptions options = run_of({}, at::kBFloat16);
  options.global_batch = 210;
  options.steps = 2;
  const Outcome expected = outcome_of(options);
  Share share(3, 0);
  for (const int ranks : {2, 3, 5, 6, 7})
    for (const int stage : {0, 1, 2, 3}) {
      if (!share.takes()) continue;
      options.ranks = ranks;
      options.stage = stage;
      options.overlap = stage == 2;
      SCOPED_TRACE(::testing::Message() << ranks << " ranks, stage " << stage);
      expect_equal_bits(expected, outcome_of(options));
    }
}

TEST(ReproducibleRanks, MayBeStagesOfAPipeline) {
  RunOptions options = run_of({}, at::kFloat);
  options.config.num_hidden_layers = 3;
  const Outcome expected = outcome_of(options);
  for (const int stages : {2, 3})
    for (const int rows : {1, 2, 3})
      for (const int stage : {0, 2, 3}) {
        options.ranks = stages * rows;
        options.pipeline = stages;
        options.stage = stage;
        SCOPED_TRACE(::testing::Message() << stages << " stages of " << rows << " ranks, stage " << stage);
        expect_equal_bits(expected, outcome_of(options));
      }
}

// The order matters: what the usual sums give is another number.
TEST(ReproducibleSums, AreOthersThanTheUsualOnes) {
  RunOptions options = run_of({}, at::kFloat);
  const Outcome expected = outcome_of(options);
  options.rows_in_order = 0;
  const Outcome one = outcome_of(options);
  options.ranks = 4;
  const Outcome four = outcome_of(options);
  EXPECT_NE(one.result.norms, four.result.norms);
  EXPECT_NE(one.result.norms, expected.result.norms);
  for (int step = 0; step < steps; ++step)
    EXPECT_NEAR(one.result.losses[std::size_t(step)], expected.result.losses[std::size_t(step)], 1e-5);
}

TEST(ReproducibleSums, RefuseOptimizersThatSumOverTensors) {
  for (const char* name : {"adafactor", "prodigy", "muon"}) {
    const RunOptions options = run_of(optimizer_row(name).defaults, at::kFloat);
    EXPECT_THROW(run_training(options), InputError) << name;
  }
}

TEST(SumLadder, FollowsTheTreeOfRanks) {
  for (int n = 1; n <= 40; ++n) {
    std::vector<at::Tensor> vectors, rungs;
    std::vector<const void*> pointers;
    for (int i = 0; i < n; ++i) {
      auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t(i + 1));
      vectors.push_back(at::randn({50}, generator, at::kFloat));
      pointers.push_back(vectors.back().const_data_ptr());
    }
    for (int i = 0; i < SumLadder::rungs(n); ++i) rungs.push_back(at::empty({50}, at::kFloat));
    SumLadder ladder(rungs);
    const at::Tensor expected = at::empty({50}, at::kFloat);
    sum_tree({pointers, at::kFloat}, {expected.data_ptr(), at::kFloat}, 50, at::kFloat);
    for (int times = 0; times < 2; ++times) {
      for (const at::Tensor& vector : vectors) {
        ladder.place().copy_(vector);
        ladder.push();
      }
      EXPECT_TRUE(at::equal(ladder.conclude(), expected)) << n;
    }
  }
}

}  // namespace reproducible_test
}  // namespace zero::testing
