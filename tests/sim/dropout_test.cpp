// Dropout of embeddings, probabilities and residuals through the engine. A mask belongs to the step, the sequence and
// the place in the model, so every layout trains like one rank with the whole batch.
#include <gtest/gtest.h>

#include "tests/sim/decoder_parts.h"
#include "tests/sim/matrix.h"
#include "tests/sim/outcome.h"
#include "tests/sim/training_run.h"

namespace zero::testing {
namespace dropout_test {

RunOptions run_of(const Parts& parts) {
  RunOptions run = ragged_run(parts, 12);
  run.config.dropout = {0.2, 0.3, 0.25};
  return run;
}

/// Ranks of the axes; the other ranks divide the batch.
struct Layout {
  int ranks, tensor = 1, context = 1, pipeline = 1;
};
std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << "np" << layout.ranks << "_tensor" << layout.tensor << "_context" << layout.context << "_pipeline"
             << layout.pipeline;
}

using Case = std::tuple<Parts, int, Layout>;
class DropoutLayouts : public ::testing::TestWithParam<Case> {};

TEST_P(DropoutLayouts, TrainAsOneRankDoes) {
  const auto& [parts, stage, layout] = GetParam();
  static std::map<std::string, RunResult> references;  // those of one rank
  if (!references.contains(parts.name)) references[parts.name] = run_training(run_of(parts));
  const RunResult& expected = references[parts.name];
  for (const int micro_batches : {1, 2, 3}) {
    RunOptions run = run_of(parts);
    run.stage = stage;
    run.ranks = layout.ranks;
    run.tensor = layout.tensor;
    run.context = layout.context;
    run.pipeline = layout.pipeline;
    run.micro_batches = micro_batches;
    if (run.global_batch % (run.ranks / (run.tensor * run.context * run.pipeline) * micro_batches)) continue;
    run.recompute_every = micro_batches == 3;
    run.recompute_attention = micro_batches == 2;
    run.mlp_tokens = micro_batches == 2 && run.tensor == 1 ? 4 : 0;
    EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << micro_batches << " micro-batches";
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& [parts, stage, layout] = info.param;
  std::ostringstream name;
  name << parts.name << "_stage" << stage << "_" << layout;
  return name.str();
}

INSTANTIATE_TEST_SUITE_P(Ranks, DropoutLayouts,
                         ::testing::ValuesIn(pairs_of(std::vector{gpt2_like(), olmo_like()}, std::vector{0, 1, 2, 3},
                                                      std::vector{Layout{1}, Layout{2}, Layout{4}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Axes, DropoutLayouts,
                         ::testing::ValuesIn(pairs_of(std::vector{gpt2_of_four(), four_heads()}, std::vector{0, 3},
                                                      std::vector{Layout{2, 2}, Layout{2, 1, 2}, Layout{4, 1, 4},
                                                                  Layout{4, 2, 2}, Layout{4, 2}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Stages, DropoutLayouts,
                         ::testing::ValuesIn(pairs_of(std::vector{gpt2_of_four()}, std::vector{0, 2},
                                                      std::vector{Layout{2, 1, 1, 2}, Layout{4, 1, 1, 2}})),
                         name_of);
// Six queries with two keys: five ranks have one or two queries each.
INSTANTIATE_TEST_SUITE_P(UnevenHeads, DropoutLayouts,
                         ::testing::Values(Case{phi3_like(), 0, Layout{5, 1, 5}},
                                           Case{phi3_like(), 3, Layout{6, 2, 3}}),
                         name_of);

TEST(DropoutRuns, DifferWithoutIt) {
  RunOptions run = run_of(gpt2_like());
  const RunResult with = run_training(run);
  run.config.dropout = {};
  EXPECT_GT(largest_difference(with, run_training(run)), 1e-2);
}

TEST(DropoutRuns, HaveTheSameBitsInEveryLayoutWhereSumsAreInOrder) {
  for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    RunOptions run = run_of(gpt2_like());
    run.config.head_dim = 16;  // the kernels take it
    run.config.hidden_size = 96;
    run.compute = compute;
    run.master = at::kFloat;
    run.rows_in_order = 1;
    run.seq_len = 9;
    run.keep_gradients = false;
    const Outcome expected = outcome_of(run);
    for (const auto& [ranks, stage, every] :
         {std::tuple(2, 3, 0), std::tuple(4, 1, 1), std::tuple(4, 3, 1), std::tuple(2, 0, 0)}) {
      run.ranks = ranks;
      run.stage = stage;
      run.recompute_every = every;
      SCOPED_TRACE(::testing::Message() << ranks << " ranks, stage " << stage);
      expect_equal_bits(expected, outcome_of(run));
    }
  }
}

TEST(DropoutRuns, GoOnWithTheSameMasks) {
  RunOptions run = run_of(gpt2_like());
  run.keep_gradients = false;
  const RunResult whole = run_training(run);
  MemoryDisk disk("/disk");
  run.ranks = 2;
  run.stage = 3;
  run.steps = 1;
  run_training(run, [&](Engine& engine, int, int step) {
    if (step == 1) save_at(engine, step, *disk.calls());
  });
  run.ranks = 4;
  run.stage = 1;
  run.first_step = 1;
  run.steps = 3;
  RunResult rest = run_training(run, [&](Engine& engine, int, int step) {
    if (step == 1) restore_from(engine, step, *disk.calls());
  });
  rest.losses[0] = whole.losses[0];
  rest.norms[0] = whole.norms[0];
  EXPECT_LT(largest_difference(whole, rest), 1e-12);
}

}  // namespace dropout_test
}  // namespace zero::testing
