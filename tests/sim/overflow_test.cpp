// fp16: an overflow on one rank makes all ranks skip the same step and leaves the weights as they were, to the bit.
#include <gtest/gtest.h>

#include <limits>

#include "models/families/families.h"
#include "models/initial_weights.h"
#include "tests/sim/training_run.h"
#include "zero/core/chain.h"
#include "zero/optim/loss_scale.h"

namespace zero::testing {
namespace overflow_test {

std::map<std::string, at::Tensor> weights_of(Engine& engine) {
  std::map<std::string, at::Tensor> weights;
  engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) { weights[spec.name] = value.clone(); });
  return weights;
}

class Overflow : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(Overflow, OnOneRankSkipsTheStepOnAll) {
  constexpr int ranks = 3, planted_step = 1, steps = 3;
  const int stage = std::get<0>(GetParam());
  const bool fused = std::get<1>(GetParam());
  SimWorld({.ranks = ranks}).run([&](Communicator& communicator, int rank) {
    const ModelConfig config = small_config(false);
    Model model = make_model(config);
    EngineOptions options;
    options.plan = ShardPlan::for_stage(stage);
    options.fuse_accumulation = fused;
    options.precision = {at::kHalf, at::kFloat, at::kHalf, at::kFloat};
    Mesh mesh(communicator);
    Engine engine(chain_of(model), mesh, options);
    RandomWeights weights(model, 3);
    engine.load(weights);
    LossScale loss_scale({.start = 1024});
    for (int step = 0; step < steps; ++step) {
      Batch batch{at::full({1, 6}, rank + step, at::kLong), at::full({1, 6}, rank + step + 1, at::kLong), {}, {}};
      ForwardContext context;
      context.batch = &batch;
      ChainPass pass(engine.chain_run(), context, {});
      const bool plant = step == planted_step && rank == 1;
      pass.backward(plant ? std::numeric_limits<double>::infinity() : loss_scale.scale() / (6.0 * ranks));
      const auto before = weights_of(engine);
      const double scale_before = loss_scale.scale();
      const StepResult result = engine
                                    .update({.lr = 0.01, .max_norm = 1.0, .loss_scale = loss_scale.scale()},
                                            pass.result().detach().to(at::kDouble))
                                    .wait();
      EXPECT_EQ(result.taken, step != planted_step) << "rank " << rank << ", step " << step;
      EXPECT_EQ(loss_scale.update(result.taken), result.taken);
      const auto after = weights_of(engine);
      bool same = true;
      for (const auto& [name, value] : before) same = same && at::equal(value, after.at(name));
      EXPECT_EQ(same, step == planted_step) << "rank " << rank << ", step " << step;
      EXPECT_EQ(loss_scale.scale(), step == planted_step ? scale_before / 2 : scale_before);
    }
    EXPECT_EQ(loss_scale.skipped_steps(), 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, Overflow, ::testing::Combine(::testing::Range(0, 4), ::testing::Bool()));

}  // namespace overflow_test
}  // namespace zero::testing
