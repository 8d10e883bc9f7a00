// Every optimizer takes the same steps however its states lie: stages, ranks, micro-batches, shard groups, stores. The
// optimizers divide the layouts among them.
#include <gtest/gtest.h>

#include "tests/sim/every_optimizer.h"
#include "tests/sim/matrix.h"
#include "tests/sim/training_run.h"

namespace zero::testing {
namespace {

RunOptions run_of(const OptimizerOptions& optimizer) {
  RunOptions run;
  run.config = config_for(optimizer);
  run.optimizer = optimizer;
  run.lr = optimizer.lr;
  run.steps = 4;
  return run;
}

class OptimizerLayouts : public ::testing::TestWithParam<int> {
 protected:
  OptimizerOptions optimizer() const { return every_optimizer()[std::size_t(GetParam())]; }

  /// The result of one rank with the whole batch.
  RunResult reference() const {
    const RunResult result = run_training(run_of(optimizer()));
    EXPECT_LT(result.losses.back(), result.losses.front());
    return result;
  }
};

TEST_P(OptimizerLayouts, EqualOneRankWithTheWholeBatch) {
  const RunResult expected = reference();
  Share share(5, GetParam());
  for (int stage = 0; stage < 4; ++stage)
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (const int micro_batches : {1, 2})
        for (int degree = 1; degree <= ranks; ++degree) {
          if (ranks % degree || !share.takes()) continue;
          RunOptions run = run_of(optimizer());
          run.stage = stage;
          run.ranks = ranks;
          run.micro_batches = micro_batches;
          run.shard_degree = degree;
          EXPECT_LT(largest_difference(expected, run_training(run)), rounding_of(optimizer()))
              << "stage " << stage << ", " << ranks << " ranks, " << micro_batches << " micro-batches, shard_degree "
              << degree;
        }
}

TEST_P(OptimizerLayouts, EqualOneRankOnEight) {
  RunOptions run = run_of(optimizer());
  run.stage = 3;
  run.ranks = 8;
  EXPECT_LT(largest_difference(reference(), run_training(run)), rounding_of(optimizer()));
}

TEST_P(OptimizerLayouts, StoresOnTheHostChangeNoBit) {
  RunOptions run = run_of(optimizer());
  run.compute = at::kBFloat16;
  run.master = at::kFloat;
  run.ranks = 3;
  run.global_batch = 6;
  for (const int stage : {0, 3}) {
    run.stage = stage;
    run.policy_of = {};
    const RunResult expected = run_training(run);
    for (const bool through_host : {false, true}) {
      run.policy_of = [=](int) {
        OffloadPolicy policy;
        policy.optimizer = host_state_stores();
        policy.through_host = through_host;
        return policy;
      };
      EXPECT_EQ(largest_difference(expected, run_training(run)), 0) << "stage " << stage;
    }
  }
}

// With one micro-batch every stage sums the same numbers in the same order: codes of 8 bits and all are equal.
TEST_P(OptimizerLayouts, StagesAgreeToTheLastBitWhereNoSumsOverTensorsAreTaken) {
  if (optimizer().name == "adafactor" || optimizer().name == "prodigy" || optimizer().name == "muon") return;
  RunOptions run = run_of(optimizer());
  run.compute = at::kBFloat16;
  run.master = at::kFloat;
  run.ranks = 3;
  const RunResult stage0 = run_training(run);
  for (const int stage : {1, 2, 3}) {
    run.stage = stage;
    EXPECT_EQ(largest_difference(stage0, run_training(run)), 0) << "stage " << stage;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerLayouts, ::testing::Range(0, int(every_optimizer().size())),
                         [](const auto& info) { return name_of(every_optimizer()[std::size_t(info.param)]); });

TEST(OptimizerReports, ProdigyReportsItsDistanceAndMuonItsMatrices) {
  for (const OptimizerOptions& options : every_optimizer()) {
    if (!options.groups.empty()) continue;
    std::map<std::string, double> told;
    RunOptions run = run_of(options);
    run.ranks = 2;
    run.stage = 3;
    run.after_update = [&](int rank, const StepResult& result) {
      if (rank == 0) told = {result.optimizer.begin(), result.optimizer.end()};
    };
    run_training(run);
    if (options.name == "prodigy") {
      EXPECT_GT(told.at("d"), options.d0) << "no test of Prodigy sees its sums unless the distance grows";
      EXPECT_DOUBLE_EQ(told.at("d_lr"), told.at("d") * options.lr);
    } else if (options.name == "muon") {
      EXPECT_EQ(told.at("muon_matrices"), 2 * 7);  // of each block q, k, v, o, gate, up, down
    } else {
      EXPECT_TRUE(told.empty());
    }
  }
}

// In a run at another rate, Prodigy keeps its own: it takes and reports the same steps as alone.
TEST(OptimizerReports, ProdigyInAGroupIsTheOneOfItsOwnRun) {
  const auto told_by = [](RunOptions run) {
    std::vector<std::map<std::string, double>> told;
    run.ranks = 2;
    run.stage = 3;
    run.steps = 3;
    run.after_update = [&](int rank, const StepResult& result) {
      if (rank == 0) told.emplace_back(result.optimizer.begin(), result.optimizer.end());
    };
    const RunResult result = run_training(run);
    return std::pair(told, result);
  };
  OptimizerOptions prodigy = optimizer_row("prodigy").defaults;
  const auto [alone, expected] = told_by(run_of(prodigy));
  OptimizerOptions adamw;
  adamw.lr = 0.25;
  adamw.groups = {{{"*"}, "prodigy", {}, {}}};
  const auto [grouped, result] = told_by(run_of(adamw));
  ASSERT_EQ(grouped.size(), 3u);
  for (std::size_t step = 0; step < grouped.size(); ++step) {
    EXPECT_NEAR(grouped[step].at("d") / alone[step].at("d"), 1, 1e-12);
    EXPECT_DOUBLE_EQ(grouped[step].at("d_lr"), grouped[step].at("d")) << "its rate is 1, the run's 0.25";
  }
  EXPECT_LT(largest_difference(expected, result), 1e-12);
}

// A group at rate 0 does not move, and the others train as if it were not there.
TEST(OptimizerGroups, ARateOfZeroFreezes) {
  for (const OptimizerOptions& options : every_optimizer()) {
    if (!options.groups.empty()) continue;
    RunOptions run = run_of(options);
    run.optimizer.groups = {{{"*embed_tokens*"}, {}, 0.0, {}}};
    if (options.name == "muon") run.optimizer.groups = {{{"*embed_tokens*"}, {}, {}, {}, 0.0}};
    run.ranks = 2;
    run.stage = 3;
    RunOptions start = run;
    start.steps = 0;
    const RunResult before = run_training(start), after = run_training(run);
    EXPECT_TRUE(std::isfinite(after.losses.back()));
    for (const auto& [name, weight] : after.weights)
      EXPECT_EQ(at::equal(weight, before.weights.at(name)), name.find("embed") != name.npos)
          << options.name << " " << name;
  }
}

// A run that moves only one group equals a run with all other tensors in a group at rate 0.
TEST(OptimizerGroups, OneTrainsWhereTheRunHasTheRateZero) {
  for (const OptimizerOptions& options : every_optimizer()) {
    if (!options.groups.empty()) continue;
    RunOptions still = run_of(options), moving = run_of(options);
    still.optimizer.groups = {{{"*embed_tokens*"}, {}, options.lr, {}}};
    if (options.name == "muon") still.optimizer.groups = {{{"*embed_tokens*"}, {}, {}, {}, 0.003}};
    moving.optimizer.groups = still.optimizer.groups;
    moving.optimizer.groups.push_back({{"*"}, {}, 0.0, {}});
    if (options.name == "muon") moving.optimizer.groups.back().lr_adamw = 0.0;
    still.optimizer.lr = still.optimizer.lr_adamw = still.lr = 0;
    for (RunOptions* run : {&still, &moving}) {
      run->ranks = 2;
      run->stage = 3;
    }
    const RunResult found = run_training(still);
    RunOptions none = moving;
    none.optimizer.groups = {moving.optimizer.groups.back()};
    EXPECT_GT(largest_difference(found, run_training(none)), 0) << options.name;
    EXPECT_EQ(largest_difference(found, run_training(moving)), 0) << options.name;
  }
}

TEST(OptimizerGroups, APatternWithoutATensorIsRefused) {
  RunOptions run = run_of({});
  run.optimizer.groups = {{{"model.layers.9.*"}, {}, 0.1, {}}};
  EXPECT_ANY_THROW(run_training(run));
}

}  // namespace
}  // namespace zero::testing
