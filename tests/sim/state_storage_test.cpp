// States in fewer bytes: rounded ones have the same bits in every layout, and a split master is the ordinary one.
#include <gtest/gtest.h>

#include <unistd.h>

#include <bit>
#include <filesystem>

#include "offload/memory/cpu_allocator.h"
#include "tests/sim/every_optimizer.h"
#include "tests/sim/matrix.h"
#include "tests/sim/offload_homes.h"
#include "tests/sim/outcome.h"
#include "tests/unit/models/deterministic.h"

namespace zero::testing {
namespace state_storage_test {

constexpr int steps = 4, half = 2;
const StateStorage in_bf16{.bf16_states = true, .seed = 5}, split{.split_master = true},
    both{.bf16_states = true, .split_master = true, .seed = 5};

RunOptions run_of(const std::string& optimizer, at::ScalarType compute, const StateStorage& storage) {
  RunOptions run;
  run.config = small_config(/*tied=*/true);
  run.optimizer = optimizer_row(optimizer).defaults;
  run.optimizer.lr = optimizer == "sgd" ? 0.1 : 0.01;
  run.optimizer.momentum = 0.9;
  run.lr = run.optimizer.lr;
  run.storage = storage;
  run.steps = steps;
  run.compute = compute;
  run.master = at::kFloat;
  run.rows_in_order = 1;
  return run;
}

class RoundedStates : public ::testing::TestWithParam<std::tuple<const char*, at::ScalarType>> {
 protected:
  RunOptions run(const StateStorage& storage = in_bf16) const {
    return run_of(std::get<0>(GetParam()), std::get<1>(GetParam()), storage);
  }

  /// Every third layout, from another one on for each optimizer and type.
  static Share share() {
    const std::string name = std::get<0>(GetParam());
    const int place = name == "adamw" ? 0 : name == "lion" ? 1 : 2;
    return {3, place + int(std::get<1>(GetParam()) == at::kBFloat16)};
  }
};

TEST_P(RoundedStates, HaveTheSameBitsInEveryLayout) {
  RunOptions options = run();
  options.steps = half;  // the second step rounds what the first has rounded
  const Outcome expected = outcome_of(options);
  Share part = share();
  for (const auto& [name, states] : expected.states)
    for (const auto& [state, value] : states)
      EXPECT_EQ(value.scalar_type(), state == "master" ? at::kFloat : at::kBFloat16);
  for (const int ranks : {1, 2, 4})
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

TEST_P(RoundedStates, HaveTheSameBitsWhereverTheyLive) {
  const test::Deterministic while_tested;  // else the bits of LibTorch's products depend on threads
  RunOptions options = run(std::get<1>(GetParam()) == at::kBFloat16 ? both : in_bf16);
  options.steps = half;
  const std::string folder = ::testing::TempDir() + "/state_storage_" + std::to_string(::getpid());
  Share part = share();
  for (const auto& [ranks, stage] : {std::pair(1, 3), std::pair(2, 1), std::pair(4, 3)}) {
    if (!part.takes()) continue;
    options.ranks = ranks;
    options.stage = stage;
    options.policy_of = {};
    options.threads = 1;
    const Outcome expected = outcome_of(options);
    SCOPED_TRACE(::testing::Message() << ranks << " ranks, stage " << stage);
    for (const auto& [home, through_host] :
         {std::pair(Home::host, false), std::pair(Home::host, true), std::pair(Home::disk, false)}) {
      SCOPED_TRACE(::testing::Message() << "home " << int(home) << (through_host ? ", through host memory" : ""));
      options.policy_of = [&, home = home, through_host = through_host](int rank) {
        return policy_at(home, folder, rank, through_host);
      };
      expect_equal_bits(expected, outcome_of(options));
    }
    options.policy_of = [](int) {
      OffloadPolicy policy;
      policy.optimizer = host_state_stores();
      policy.through_host = true;  // weights are where a GPU has them, and pass through a buffer
      return policy;
    };
    expect_equal_bits(expected, outcome_of(options));
    options.policy_of = {};
    options.threads = 3;
    SCOPED_TRACE("three threads");
    expect_equal_bits(expected, outcome_of(options));
  }
  std::filesystem::remove_all(folder);
}

TEST_P(RoundedStates, FollowTheSeedAndDifferFromStatesInFp32) {
  const Outcome expected = outcome_of(run());
  StateStorage other = in_bf16;
  other.seed = 6;
  EXPECT_GT(largest_difference(expected.result, outcome_of(run(other)).result), 0);
  const double off = largest_difference(expected.result, outcome_of(run({})).result);
  EXPECT_GT(off, 0);
  EXPECT_LT(off, 0.2);
}

TEST_P(RoundedStates, ResumeInAnyLayout) {
  RunOptions options = run();
  const Outcome expected = outcome_of(options);
  struct Layout {
    int ranks, stage;
  };
  for (const auto& [before, after] : {std::pair(Layout{4, 3}, Layout{2, 0}), std::pair(Layout{1, 0}, Layout{4, 3}),
                                      std::pair(Layout{2, 1}, Layout{4, 2})}) {
    MemoryDisk disk("/disk");
    options.first_step = 0;
    options.steps = half;
    options.ranks = before.ranks;
    options.stage = before.stage;
    run_training(options, [&](Engine& engine, int, int step) {
      if (step == half) save_at(engine, step, *disk.calls());
    });
    options.first_step = half;
    options.steps = steps;
    options.ranks = after.ranks;
    options.stage = after.stage;
    States states;
    run_training(options, [&](Engine& engine, int, int step) {
      if (step == half) restore_from(engine, step, *disk.calls());
      if (step == steps) add_states(engine, states);
    });
    SCOPED_TRACE(::testing::Message() << "from " << before.ranks << " ranks to " << after.ranks);
    expect_equal_bits(expected.states, states);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RoundedStates,
                         ::testing::Combine(::testing::Values("adamw", "lion", "sgd"),
                                            ::testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + c10::toString(std::get<1>(info.param));
                         });

// Rules with sums over tensors, or of whole matrices, work as usual. States that start as the weights, numbers that
// blocks share, and codes keep their types.
TEST(StatesInBf16, AreThoseThatFollowGradients) {
  for (const char* const name : {"muon", "prodigy", "adamw8bit", "adafactor"}) {
    RunOptions options = run_of(name, at::kBFloat16, both);
    options.rows_in_order = 0;
    options.config = config_for(options.optimizer, true);
    if (std::string(name) == "prodigy") options.lr = options.optimizer.lr = 1;
    options.ranks = 2;
    options.stage = 3;
    const Outcome outcome = outcome_of(options);
    options.storage = {};
    const RunResult ordinary = run_training(options);
    for (int step = 0; step < steps; ++step)
      EXPECT_NEAR(outcome.result.losses[std::size_t(step)], ordinary.losses[std::size_t(step)], 0.05) << name;
    for (const auto& [tensor, states] : outcome.states)
      for (const auto& [state, value] : states) {
        const bool rounds = state == "exp_avg" || state == "exp_avg_sq" || state == "momentum_buffer" || state == "s";
        EXPECT_EQ(value.scalar_type() == at::kBFloat16, rounds) << name << " " << state;
      }
  }
}

/// True if a master lies in the middle of two weights, where an ordinary one may be rounded down.
bool has_ties(const States& states) {
  for (const auto& [name, of_tensor] : states) {
    if (!of_tensor.contains("master")) continue;
    const at::Tensor low = of_tensor.at("master").view(at::kInt).bitwise_and(0x1FFFF);
    if (low.eq(0x8000).any().item<bool>()) return true;
  }
  return false;
}

/// The outcome of a run without ties: searches for such a learning rate near the run's own.
Outcome ordinary_outcome(RunOptions& run) {
  run.storage = {};
  for (int tries = 0; tries < 50; ++tries, run.lr *= 1.01) {
    Outcome outcome;
    std::map<int, States> by_step;
    for (int step = 0; step <= run.steps; ++step) by_step[step];
    outcome.result = run_training(run, [&](Engine& engine, int, int step) { add_states(engine, by_step.at(step)); });
    outcome.states = by_step.at(run.steps);
    if (std::none_of(by_step.begin(), by_step.end(), [](const auto& at) { return has_ties(at.second); }))
      return outcome;
  }
  ADD_FAILURE() << "ties in every run";
  return {};
}

TEST(SplitMasters, AreThoseOfTheOrdinaryRunToTheLastBit) {
  for (const char* const name : {"adamw", "lion", "sgd", "muon", "adafactor", "prodigy", "adamw8bit"}) {
    RunOptions options = run_of(name, at::kBFloat16, {});
    options.config = config_for(options.optimizer, true);
    if (std::string(name) == "prodigy") options.lr = options.optimizer.lr = 1;
    if (std::string(name) == "adamw8bit") options.steps = 2;  // more parameters, of which some lie in a tie sooner
    options.rows_in_order = 0;
    for (const auto& [ranks, stage] : {std::pair(1, 0), std::pair(3, 1), std::pair(2, 2), std::pair(4, 3)}) {
      options.ranks = ranks;
      options.stage = stage;
      const Outcome expected = ordinary_outcome(options);
      options.storage = split;
      SCOPED_TRACE(::testing::Message() << name << ", " << ranks << " ranks, stage " << stage);
      expect_equal_bits(expected, outcome_of(options));
    }
  }
}

TEST(SplitMasters, HoldForAdaptersShardGroupsAndAccumulation) {
  RunOptions options = run_of("adamw", at::kBFloat16, {});
  options.config = small_config(false);
  options.rows_in_order = 0;
  options.micro_batches = 2;
  options.ranks = 4;
  options.stage = 3;
  options.shard_degree = 2;
  for (const bool lora : {false, true}) {
    if (lora) {
      options.lora.emplace();
      options.lora->r = 3;
      options.lora->target_modules = {"all-linear"};
    }
    const Outcome expected = ordinary_outcome(options);
    options.storage = split;
    expect_equal_bits(expected, outcome_of(options));
  }
}

TEST(SplitMasters, GoOnAsOrdinaryOnesAndBack) {
  RunOptions options = run_of("adamw", at::kBFloat16, {});
  const Outcome expected = ordinary_outcome(options);
  const std::string folder = ::testing::TempDir() + "/split_masters_" + std::to_string(::getpid());
  for (const bool first : {false, true}) {
    MemoryDisk disk("/disk");
    options.storage = first ? split : StateStorage();
    options.first_step = 0;
    options.steps = half;
    options.ranks = 4;
    options.stage = 3;
    options.policy_of = [&](int rank) { return policy_at(Home::disk, folder, rank); };
    run_training(options, [&](Engine& engine, int, int step) {
      if (step == half) save_at(engine, step, *disk.calls());
    });
    for (const bool then : {false, true}) {
      options.storage = then ? split : StateStorage();
      options.first_step = half;
      options.steps = steps;
      options.ranks = 2;
      options.stage = 1;
      options.policy_of = {};
      States states;
      const RunResult result = run_training(options, [&](Engine& engine, int, int step) {
        if (step == half) restore_from(engine, step, *disk.calls());
        if (step == steps) add_states(engine, states);
      });
      SCOPED_TRACE(::testing::Message() << (first ? "split, then " : "ordinary, then ")
                                        << (then ? "split" : "ordinary"));
      expect_equal_bits(expected.states, states);
      for (const auto& [name, weight] : expected.result.weights)
        EXPECT_TRUE(has_equal_bits(weight, result.weights.at(name))) << name;
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(SplitMasters, AndRoundedStatesTakeTwoBytesEach) {
  CpuAllocator allocator;
  allocator.install();
  const auto bytes_of = [](const StateStorage& storage) {
    RunOptions options = run_of("adamw", at::kBFloat16, storage);
    options.rows_in_order = 0;
    options.ranks = 2;
    options.stage = 3;
    options.steps = 1;
    std::vector<MemoryTracker> trackers(2);
    std::int64_t bytes = 0;
    run_training(
        options,
        [&](Engine&, int rank, int step) {
          if (rank == 0 && step == 1) bytes = trackers[0].live(MemoryCategory::optimizer);
        },
        [&](int rank) -> MemoryTracker& { return trackers[std::size_t(rank)]; });
    return bytes;
  };
  const double parameter = double(bytes_of({})) / 12;
  EXPECT_NEAR(double(bytes_of(in_bf16)) / parameter, 8, 0.05);
  EXPECT_NEAR(double(bytes_of(split)) / parameter, 10, 0.05);
  EXPECT_NEAR(double(bytes_of(both)) / parameter, 6, 0.05);  // arrays are filled up to 64 bytes
}

}  // namespace state_storage_test
}  // namespace zero::testing
