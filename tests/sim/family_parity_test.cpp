// Decoders with all features that Llama lacks. At every stage, with any ranks and micro-batches, they train like one
// rank with the whole batch, in fp64, with and without adapters.
#include <gtest/gtest.h>

#include "tests/sim/decoder_parts.h"
#include "tests/sim/matrix.h"
#include "tests/sim/training_run.h"

namespace zero::testing {
namespace {

class FamilyParity : public ::testing::TestWithParam<std::tuple<Parts, int, int>> {
 protected:
  RunOptions reference() const {
    RunOptions run;
    run.config = std::get<0>(GetParam()).config;
    run.ragged = true;
    run.steps = 4;
    run.optimizer.eps = 1e-5;  // a bias of keys alone changes nothing: its gradient is nothing but rounding
    return run;
  }

  /// `kind`: full or of adapters.
  static void expect_equal_runs(const RunOptions& reference, const std::string& kind) {
    static std::map<std::string, RunResult> references;  // by parts and kind: those of one rank
    const std::string name = std::get<0>(GetParam()).name + kind;
    if (!references.contains(name)) references[name] = run_training(reference);
    const RunResult& expected = references[name];
    ASSERT_GT(expected.norms.back(), 0);
    for (const int micro_batches : {1, 2, 3}) {
      RunOptions run = reference;
      run.stage = std::get<1>(GetParam());
      run.ranks = std::get<2>(GetParam());
      run.micro_batches = micro_batches;
      if (run.global_batch % (run.ranks * micro_batches)) continue;
      run.recompute_every = micro_batches == 3;
      run.recompute_attention = micro_batches == 2;
      EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << micro_batches << " micro-batches";
    }
  }
};

TEST_P(FamilyParity, EqualsOneRankWithTheWholeBatch) { expect_equal_runs(reference(), "full"); }

TEST_P(FamilyParity, EqualsOneRankUnderAdapters) {
  RunOptions run = reference();
  run.lora.emplace();
  run.lora->r = 3;
  run.lora->alpha = 6;
  run.lora->dropout = 0.3;
  run.lora->target_modules = {"all-linear"};
  expect_equal_runs(run, "adapters");
}

INSTANTIATE_TEST_SUITE_P(Matrix, FamilyParity,
                         ::testing::ValuesIn(pairs_of(std::vector{gemma_like(), olmo_like(), gpt2_like(), phi3_like()},
                                                      std::vector{0, 1, 2, 3}, std::vector{1, 2, 3, 4})),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_stage" +
                                  std::to_string(std::get<1>(info.param)) + "_np" +
                                  std::to_string(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace zero::testing
