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

TEST(Recomputation, CoversOnlyEveryKthBlock) {
  EXPECT_THAT(passes_of(0), ElementsAre(1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(passes_of(1), ElementsAre(1, 2, 2, 2, 2, 2, 1));
  EXPECT_THAT(passes_of(2), ElementsAre(1, 2, 1, 2, 1, 2, 1));
  EXPECT_THAT(passes_of(3), ElementsAre(1, 2, 1, 1, 2, 1, 1));
  EXPECT_THAT(passes_of(9), ElementsAre(1, 2, 1, 1, 1, 1, 1));
}

}  // namespace
}  // namespace zero::testing
