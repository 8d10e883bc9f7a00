// The pipeline axis, alone and with the others: every family trains as one rank does, in fp64, at every stage, by every
// schedule, in full and with adapters, over padded rows. Losses, norms, all gradients and weights are compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "tests/sim/checkpoint_bench.h"
#include "tests/sim/decoder_parts.h"
#include "tests/sim/every_optimizer.h"
#include "tests/sim/matrix.h"
#include "tests/sim/training_run.h"
#include "tests/unit/message_of.h"
#include "zero/core/chain.h"

namespace zero::testing {
namespace pipeline_test {

struct Layout {
  int pipeline = 2, shard = 1, context = 1, tensor = 1, shard_degree = 0;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int chunks = 1;

  int ranks() const { return pipeline * shard * context * tensor; }
};
std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  out << "pipeline" << layout.pipeline << "_shard" << layout.shard << "_context" << layout.context << "_tensor"
      << layout.tensor;
  if (layout.shard_degree) out << "_degree" << layout.shard_degree;
  if (layout.schedule == ScheduleKind::gpipe) out << "_gpipe";
  if (layout.schedule == ScheduleKind::interleaved) out << "_chunks" << layout.chunks;
  return out;
}

RunOptions with_layout(RunOptions run, const Layout& layout) {
  run.ranks = layout.ranks();
  run.pipeline = layout.pipeline;
  run.context = layout.context;
  run.tensor = layout.tensor;
  run.shard_degree = layout.shard_degree;
  run.schedule = layout.schedule;
  run.chunks = layout.chunks;
  return run;
}

/// With more blocks, for more stages.
Parts deep(Parts parts) {
  parts.config.num_hidden_layers = 5;
  auto& layers = parts.config.layers;
  for (std::size_t l = 0; !layers.empty() && layers.size() < 5; ++l) layers.push_back(LayerAttention(layers[l]));
  return parts;
}
Parts llama_like(bool tied = false) { return deep({tied ? "llama_tied" : "llama_like", small_config(tied)}); }

RunOptions reference_of(const Parts& parts) { return ragged_run(parts, 8); }

void add_adapters(RunOptions& run) {
  run.lora.emplace();
  run.lora->r = 3;
  run.lora->alpha = 6;
  run.lora->dropout = 0.3;
  run.lora->target_modules = {"all-linear"};
}

using Case = std::tuple<Parts, bool, int, Layout>;

/// In full and of adapters.
class PipelineAxis : public ::testing::TestWithParam<Case> {};

TEST_P(PipelineAxis, TrainsAsOneRankDoes) {
  const auto& [parts, adapters, stage, layout] = GetParam();
  RunOptions reference = reference_of(parts);
  if (adapters) add_adapters(reference);
  static std::map<std::pair<std::string, bool>, RunResult> references;  // those of one rank
  if (!references.contains({parts.name, adapters})) references[{parts.name, adapters}] = run_training(reference);
  const RunResult& expected = references[{parts.name, adapters}];
  ASSERT_GT(expected.norms.back(), 0);
  for (const int micro_batches : {1, 4}) {
    RunOptions run = with_layout(reference, layout);
    run.stage = stage;
    run.micro_batches = micro_batches;
    if (run.global_batch % (layout.shard * micro_batches)) continue;
    run.recompute_every = micro_batches == 4;
    run.keep_inputs = micro_batches == 1;
    run.fuse_accumulation = micro_batches == 4;
    EXPECT_LT(largest_difference(expected, run_training(run)), 1e-12) << micro_batches << " micro-batches";
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& [parts, adapters, stage, layout] = info.param;
  std::ostringstream name;
  name << parts.name << (adapters ? "_adapters" : "") << "_stage" << stage << "_" << layout;
  return name.str();
}

const std::vector<bool> kinds = {false, true};
const std::vector<int> stages = {0, 1, 2, 3};

INSTANTIATE_TEST_SUITE_P(Stages, PipelineAxis,
                         ::testing::ValuesIn(pairs_of(std::vector{llama_like(), llama_like(true), deep(gemma_like()),
                                                                  deep(olmo_like()), deep(gpt2_like()),
                                                                  deep(phi3_like())},
                                                      kinds, stages, std::vector{Layout{2, 1}, Layout{2, 2}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(
    ManyStages, PipelineAxis,
    ::testing::ValuesIn(pairs_of(std::vector{llama_like(), llama_like(true)}, kinds, std::vector{0, 1, 3},
                                 std::vector{Layout{3, 1}, Layout{4, 1}, Layout{5, 1}, Layout{3, 2}})),
    name_of);
INSTANTIATE_TEST_SUITE_P(Schedules, PipelineAxis,
                         ::testing::ValuesIn(pairs_of(std::vector{llama_like(), deep(phi3_like())}, kinds, stages,
                                                      std::vector{
                                                          Layout{2, 2, 1, 1, 0, ScheduleKind::gpipe},
                                                          Layout{2, 1, 1, 1, 0, ScheduleKind::interleaved, 2},
                                                          Layout{2, 2, 1, 1, 0, ScheduleKind::interleaved, 2}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Hybrid, PipelineAxis,
                         ::testing::ValuesIn(pairs_of(std::vector{llama_like()}, kinds, std::vector{1, 2, 3},
                                                      std::vector{Layout{2, 2, 1, 1, 1}, Layout{2, 4, 1, 1, 2}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(
    OtherAxes, PipelineAxis,
    ::testing::ValuesIn(pairs_of(std::vector{llama_like(), llama_like(true), deep(phi3_like())}, kinds, stages,
                                 std::vector{Layout{2, 1, 1, 2}, Layout{2, 1, 2, 1}, Layout{2, 2, 1, 2}})),
    name_of);
INSTANTIATE_TEST_SUITE_P(AllAxes, PipelineAxis,
                         ::testing::ValuesIn(pairs_of(std::vector{deep(four_heads()), deep(gpt2_of_four())}, kinds,
                                                      stages, std::vector{Layout{2, 1, 2, 2}})),
                         name_of);

// Only the adapters of the last block learn: no gradient goes back to the stages before it.
TEST(PipelineAdapters, LearnInOneStageAlone) {
  for (const char* layer : {"layers.4.", "layers.0."}) {
    RunOptions run = reference_of(llama_like());
    add_adapters(run);
    run.lora->target_modules = {std::string("model.") + layer + "self_attn.q_proj"};
    const RunResult expected = run_training(run);
    run.micro_batches = 4;
    for (const int stage : {0, 2})
      for (const Layout& layout : {Layout{2, 1}, Layout{3, 2}}) {
        run.stage = stage;
        EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 1e-12) << layer << layout;
      }
  }
}

TEST(PipelineTokens, MayBeOfPackedDocuments) {
  for (const Parts& parts : {deep(four_heads()), deep(gemma_like())}) {
    RunOptions run = reference_of(parts);
    run.ragged = false;
    run.packed = true;
    const RunResult expected = run_training(run);
    run.micro_batches = 2;
    for (const Layout& layout : {Layout{2, 2}, Layout{3, 1}, Layout{2, 1, 2, 1}})
      EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 1e-12) << parts << layout;
  }
}

TEST(PipelineTokens, OneTrainedTokenIsEnough) {
  RunOptions run = reference_of(deep(four_heads()));
  run.global_batch = 1;
  run.seq_len = 7;
  run.ragged = false;
  run.steps = 2;
  run.only_last_token = true;
  const RunResult expected = run_training(run);
  for (const Layout& layout : {Layout{2, 1}, Layout{2, 1, 2, 1}, Layout{2, 1, 2, 2}})
    EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 1e-12) << layout;
}

// Statistics of the run and of tensors, whole matrices, and blocks of states.
TEST(PipelineOptimizers, TrainAsOnOneRank) {
  Share share(2, 0);  // 9 layouts: each optimizer begins at another one
  for (const OptimizerOptions& optimizer : every_optimizer()) {
    const std::string name = testing::name_of(optimizer);
    RunOptions run = reference_of(llama_like(true));
    run.keep_gradients = false;
    run.optimizer = optimizer;
    run.lr = optimizer.lr;
    run.steps = 4;
    run.optimizer.eps = std::max(run.optimizer.eps, 1e-5);
    const RunResult expected = run_training(run);
    run.micro_batches = 4;
    for (const int stage : {0, 1, 3})
      for (const Layout& layout : {Layout{2, 1}, Layout{2, 2}, Layout{3, 1}}) {
        if (!share.takes()) continue;
        run.stage = stage;
        EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))),
                  name == "adamw8bit" ? 1e-6 : 1e-10)
            << name << " stage " << stage << " " << layout;
      }
  }
}

// The two gradients of a tied matrix are summed in their type before they meet other micro-batches, wherever its head
// lies: one rank has the same bits.
TEST(PipelineTypes, TiedEndsHaveTheBitsOfOneRank) {
  RunOptions run = reference_of(llama_like(true));
  run.compute = at::kBFloat16;
  run.master = at::kFloat;
  run.micro_batches = 4;
  run.keep_gradients = true;
  run.max_norm = 0;  // the norm is summed in another order
  const RunResult expected = run_training(run);
  for (const Layout& layout : {Layout{2, 1}, Layout{3, 1}}) {
    const RunResult found = run_training(with_layout(run, layout));
    for (const auto& [name, gradient] : expected.gradients)
      EXPECT_TRUE(at::equal(gradient, found.gradients.at(name))) << name << layout;
  }
}

// Quantized bases, and frozen weights that stay whole.
TEST(PipelineBases, MayBeFrozenInAnyWay) {
  for (const bool keep : {false, true})
    for (const bool nf4 : {false, true}) {
      RunOptions run = reference_of(llama_like());
      add_adapters(run);
      run.keep_frozen = keep;
      if (nf4) run.frozen = FrozenFormat::in_nf4(false);
      run.compute = run.master = at::kFloat;
      const RunResult expected = run_training(run);
      run.micro_batches = 4;
      for (const int stage : {0, 3})
        for (const Layout& layout : {Layout{2, 1}, Layout{2, 2}}) {
          run.stage = stage;
          EXPECT_LT(largest_difference(expected, run_training(with_layout(run, layout))), 2e-4) << stage << layout;
        }
    }
}

// Checkpoints of any layout go on in any other.
TEST(PipelineCheckpoints, GoOnInAnyLayout) {
  const Layout layouts[] = {{1, 1}, {1, 3},       {2, 1},       {3, 1},
                            {2, 2}, {2, 1, 1, 2}, {2, 1, 2, 1}, {2, 2, 1, 1, 0, ScheduleKind::interleaved, 2}};
  for (const bool adapters : {false, true}) {
    RunOptions base = reference_of(llama_like());
    if (adapters) add_adapters(base);
    base.global_batch = 12;
    base.steps = 4;
    base.keep_gradients = false;
    const RunResult expected = run_training(base);
    int stage = -1;
    Share share(3, adapters);
    for (const Layout& from : layouts)
      for (const Layout& to : layouts) {
        ++stage;
        if (!share.takes()) continue;
        SCOPED_TRACE(::testing::Message() << from << " to " << to);
        MemoryDisk disk("/disk");
        RunOptions run = with_layout(base, from);
        run.stage = stage % 4;
        run.steps = 2;
        run_training(run, [&](Engine& engine, int, int step) {
          if (step == 2) save_at(engine, step, *disk.calls());
        });
        run = with_layout(base, to);
        run.stage = (stage + 1) % 4;
        run.micro_batches = 2;
        run.first_step = 2;
        RunResult resumed = run_training(run, [&](Engine& engine, int, int step) {
          if (step == 2) restore_from(engine, step, *disk.calls());
        });
        RunResult whole = expected;
        for (RunResult* result : {&whole, &resumed}) {
          result->losses.erase(result->losses.begin(), result->losses.begin() + 2);
          result->norms.erase(result->norms.begin(), result->norms.begin() + 2);
        }
        EXPECT_LT(largest_difference(whole, resumed), 1e-12);
      }
  }
}

// M micro-batches of B x T tokens: each boundary sees M activations and M gradients; with tied ends there is one more.
TEST(PipelineTraffic, FollowsTheFormulas) {
  for (const bool tied : {false, true}) {
    RunOptions run = reference_of(llama_like(tied));
    run.ragged = false;
    run.keep_gradients = false;
    run.steps = 1;
    run.micro_batches = 4;
    const RunResult result = run_training(with_layout(run, {3, 1}));
    std::int64_t sent = 0, received = 0;
    for (const auto& calls : result.calls)
      for (const SimCall& call : calls) {
        if (call.call.kind == CollectiveKind::send) sent += call.call.numel;
        if (call.call.kind == CollectiveKind::recv) received += call.call.numel;
      }
    const std::int64_t boundaries = tied ? 3 : 2;
    EXPECT_EQ(sent, 2 * boundaries * run.global_batch * run.seq_len * run.config.hidden_size);
    EXPECT_EQ(received, sent);
  }
}

TEST(PipelineRefusals, SayWhatIsLegal) {
  const auto refusal = [](const Layout& layout, const Parts& parts) {
    return message_of<InputError>([&] { run_training(with_layout(reference_of(parts), layout)); });
  };
  EXPECT_THAT(refusal({7, 1}, llama_like()), ::testing::HasSubstr("7 stages are more than the 5 blocks"));
  EXPECT_THAT(refusal({2, 1, 1, 1, 0, ScheduleKind::interleaved, 2}, llama_like(true)),
              ::testing::HasSubstr("tied embeddings"));
}

}  // namespace pipeline_test
}  // namespace zero::testing
