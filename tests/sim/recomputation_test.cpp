// Tests which blocks backward recomputes. Results do not show it, since recomputed values are equal.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/sim/sim_world.h"
#include "models/initial_weights.h"
#include "offload/memory/cpu_allocator.h"
#include "tests/sim/training_run.h"
#include "zero/core/engine.h"

namespace zero::testing {
namespace {

using ::testing::ElementsAre;

/// Multiplies by its weight, and counts how often it is asked to.
class Counted final : public Unit {
 public:
  explicit Counted(const std::string& name) : Unit(name) {
    parameters_.resize(1);
    parameters_[0].parts = {{name, {1, 4}}};
  }
  at::Tensor forward(const at::Tensor& x, const ForwardContext&) override {
    ++passes;
    const at::Tensor y = (x.defined() ? x : at::ones({3, 4}, at::kDouble)) * parameters_[0].tensor;
    return name() == "head" ? y.sum() : y;
  }
  int passes = 0;
};

/// For each unit, passes in a forward and its backward: embedding, five blocks, head.
std::vector<int> passes_of(int recompute_every) {
  std::vector<int> passes;
  SimWorld(1).run([&](Communicator& communicator, int) {
    std::vector<std::unique_ptr<Counted>> units;
    std::vector<InitialTensor> tensors;
    Chain chain;
    for (const char* name : {"embedding", "a", "b", "c", "d", "e", "head"}) {
      units.push_back(std::make_unique<Counted>(name));
      tensors.push_back({{name, {1, 4}}, Init::ones});
      chain.push_back(units.back().get());
    }
    EngineOptions options;
    options.plan = ShardPlan::for_stage(3);
    options.precision = {at::kDouble, at::kDouble, at::kDouble, at::kDouble};
    options.recompute_every = recompute_every;
    Mesh mesh(communicator);
    Engine engine(chain, mesh, options);
    RandomWeights weights(tensors, 1);
    engine.load(weights);
    ForwardContext context;
    const Batch none;
    context.batch = &none;
    context.training = true;
    ChainPass(engine.chain_run(), context, {}).backward(1);
    for (const auto& unit : units) passes.push_back(unit->passes);
  });
  return passes;
}

/// The largest peak of a rank's activations, and the run.
std::pair<std::int64_t, RunResult> run_keeping(bool keep, bool lora, bool recompute_attention) {
  RunOptions options;
  options.config = small_config(false);
  options.compute = at::kBFloat16;
  options.master = at::kFloat;
  options.stage = 3;
  options.ranks = 2;
  options.micro_batches = 2;
  options.steps = 3;
  options.keep_inputs = keep;
  options.recompute_attention = recompute_attention;
  if (lora) options.lora.emplace().dropout = 0.2;
  std::vector<MemoryTracker> trackers(2);
  std::int64_t most = 0;
  const auto after_step = [&](Engine&, int rank, int) {
    if (rank == 0) most = trackers[0].peak(MemoryCategory::activations);
  };
  RunResult result =
      run_training(options, after_step, [&](int rank) -> MemoryTracker& { return trackers[std::size_t(rank)]; });
  return {most, std::move(result)};
}

// Kept values have the bits of recomputed ones.
TEST(Recomputation, KeepingInputsTakesMemoryAndChangesNoBit) {
  CpuAllocator allocator;
  allocator.install();
  for (const bool lora : {false, true})
    for (const bool attention : {false, true}) {
      const auto [most_without, without] = run_keeping(false, lora, attention);
      const auto [most, with] = run_keeping(true, lora, attention);
      EXPECT_EQ(with.losses, without.losses);
      EXPECT_EQ(with.norms, without.norms);
      for (const auto& [name, weight] : without.weights) EXPECT_TRUE(with.weights.at(name).equal(weight)) << name;
      // Adapters are only in the attention half; in the other one nothing needs the products' inputs.
      if (lora && attention) {
        EXPECT_EQ(most, most_without);
      } else {
        EXPECT_GT(most, most_without);
      }
    }
}

/// Long rows of a wide MLP in bf16, on two ranks of stage 3.
RunOptions long_rows() {
  RunOptions options;
  options.config = small_config(false);
  options.config.intermediate_size = 256;
  options.seq_len = 64;
  options.global_batch = 8;
  options.stage = 3;
  options.ranks = 2;
  options.micro_batches = 2;
  options.steps = 3;
  options.keep_gradients = true;
  options.lora.emplace().dropout = 0.2;
  options.lora->target_modules = {"q_proj", "gate_proj", "down_proj"};
  return options;
}

struct Watched {
  RunResult result;
  std::int64_t activations = 0;  // the peak of rank 0
};

Watched watched(const RunOptions& options) {
  std::vector<MemoryTracker> trackers(std::size_t(options.ranks));
  Watched run;
  const auto after_step = [&](Engine&, int rank, int) {
    if (rank == 0) run.activations = trackers[0].peak(MemoryCategory::activations);
  };
  run.result =
      run_training(options, after_step, [&](int rank) -> MemoryTracker& { return trackers[std::size_t(rank)]; });
  return run;
}

// Tiles that divide the 128 tokens of a micro-batch, that do not, of one token, and longer than all tokens.
TEST(Recomputation, TilesOfAnMlpGiveTheSameWeights) {
  for (const bool lora : {true, false})
    for (const int every : {0, 1}) {
      RunOptions options = long_rows();
      if (!lora) options.lora.reset();
      options.recompute_every = every;
      const RunResult whole = run_training(options);
      for (const std::int64_t tokens : {1, 37, 64, 128, 1000}) {
        options.mlp_tokens = tokens;
        options.recompute_attention = every == 0 && tokens == 37;
        EXPECT_LT(largest_difference(run_training(options), whole), 1e-12) << tokens << " tokens, lora " << lora;
      }
    }
}

TEST(Recomputation, TilesOfAnMlpGiveTheSameWeightsOnOtherAxes) {
  RunOptions options = long_rows();
  options.packed = true;
  options.ranks = 1;
  options.micro_batches = 4;
  options.global_batch = 8;
  const RunResult whole = run_training(options);
  options.mlp_tokens = 37;
  options.context = 2;
  options.ranks = 2;
  EXPECT_LT(largest_difference(run_training(options), whole), 1e-12);
  options.context = 1;
  options.pipeline = 2;
  options.stage = 1;
  EXPECT_LT(largest_difference(run_training(options), whole), 1e-12);
}

TEST(Recomputation, TilesOfAnMlpTakeLessMemory) {
  CpuAllocator allocator;
  allocator.install();
  RunOptions options = long_rows();
  options.lora.reset();
  options.recompute_every = 1;
  const std::int64_t whole = watched(options).activations;
  options.mlp_tokens = 16;
  EXPECT_LT(2 * watched(options).activations, whole);
}

// Inputs that go to other memory and back are the same numbers.
TEST(Recomputation, InputsOnTheHostChangeNoBitAndLeaveTheActivations) {
  CpuAllocator allocator;
  allocator.install();
  for (const int every : {1, 2}) {
    RunOptions options = long_rows();
    options.config.num_hidden_layers = 6;
    options.recompute_every = every;
    options.mlp_tokens = 16;
    const Watched here = watched(options);
    options.inputs_on_host = true;
    const Watched there = watched(options);
    EXPECT_EQ(there.result.losses, here.result.losses);
    EXPECT_EQ(there.result.norms, here.result.norms);
    for (const auto& [name, weight] : here.result.weights) EXPECT_TRUE(there.result.weights.at(name).equal(weight));
    EXPECT_LT(there.activations, here.activations);
  }
}

// A sum in bf16 would be rounded after every tile.
TEST(Recomputation, TilesAddToNoNarrowSum) {
  for (const auto& [gradient, fuses] : {std::pair(at::kBFloat16, false), std::pair(at::kFloat, true)}) {
    RunOptions options = long_rows();
    options.lora.reset();
    options.stage = 1;
    options.micro_batches = options.steps = 1;
    options.compute = at::kBFloat16;
    options.master = at::kFloat;
    options.gradient = gradient;
    options.fuse_accumulation = true;
    options.keep_gradients = false;
    options.mlp_tokens = 16;
    const bool expected = fuses;
    run_training(options, [&](Engine& engine, int, int) {
      for (const auto& group : engine.groups()) EXPECT_EQ(group->written_gradient().has_value(), expected);
    });
  }
}

// Inputs of many lengths, as unpacked conversations have them.
TEST(Recomputation, BuffersOnTheHostDoNotGrowWithTheLengths) {
  InputHome home(at::kCPU);
  for (const int length : {10, 30, 20, 31, 5, 17, 31, 1}) {
    KeptInputs kept(home, 4);
    std::vector<at::Tensor> inputs;
    for (int unit = 0; unit < 3; ++unit) {
      inputs.push_back(at::rand({2, length, 8}, at::kDouble));
      kept.keep(unit, inputs.back());
    }
    EXPECT_LE(home.buffers.bytes(), 3 * 2 * 31 * 8 * 8);
    if (length == 20) continue;  // backward never comes
    for (int unit = 2; unit >= 0; --unit) EXPECT_TRUE(kept.take(unit).equal(inputs[std::size_t(unit)]));
  }
}

TEST(Recomputation, CoversOnlyEveryKthBlock) {
  EXPECT_THAT(passes_of(0), ElementsAre(1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(passes_of(1), ElementsAre(1, 2, 2, 2, 2, 2, 1));
  EXPECT_THAT(passes_of(2), ElementsAre(1, 2, 1, 2, 1, 2, 1));
  EXPECT_THAT(passes_of(3), ElementsAre(1, 2, 1, 1, 2, 1, 1));
  EXPECT_THAT(passes_of(9), ElementsAre(1, 2, 1, 1, 1, 1, 1));
}

}  // namespace
}  // namespace zero::testing
