// Unusual passes: without a backward, with two, in another order, or ended by a fault. Later passes must not
// notice.
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "offload/memory/host_shard_store.h"
#include "tests/sim/training_run.h"
#include "zero/core/chain.h"

namespace zero::testing {
namespace {

/// A store of weights that fails once, at the n-th next acquire.
class Failing final : public ShardStore {
 public:
  Failing(const std::vector<std::int64_t>& bytes, int& fails_in)
      : ShardStore(bytes), inner_(make_host_shard_store(bytes)), fails_in_(fails_in) {}
  void* acquire(int shard) override {
    if (fails_in_ >= 0 && fails_in_-- == 0) throw Error("the disk is gone");
    return inner_->acquire(shard);
  }
  void release(int shard, bool changed) override { inner_->release(shard, changed); }

 private:
  std::unique_ptr<ShardStore> inner_;
  int& fails_in_;
};

/// One rank, stage 3, weights in a store: every unit's come and go.
struct Bench {
  SimWorld world{1};
  int fails_in = -1;
  Batch batch;
  ForwardContext context;

  void run(bool lora, const std::function<void(std::unique_ptr<Engine>&)>& use) {
    batch.ids = at::arange(12, at::kLong).view({2, 6});
    batch.targets = at::arange(1, 13, at::kLong).view({2, 6});
    context.batch = &batch;
    context.training = true;
    world.run([&](Communicator& communicator, int) {
      Model model = make_model(small_config(true));
      if (lora) add_lora(model, {});
      EngineOptions options;
      options.plan = ShardPlan::for_stage(3);
      options.precision = {at::kDouble, at::kDouble, at::kDouble, at::kDouble};
      options.offload.weights = [this](const std::vector<std::int64_t>& bytes) {
        return std::make_unique<Failing>(bytes, fails_in);
      };
      Mesh mesh(communicator);
      auto engine = std::make_unique<Engine>(chain_of(model), mesh, options);
      RandomWeights weights(model, 7);
      engine->load(weights);
      use(engine);
    });
  }

  /// The loss of one step, and of the weights after it.
  std::pair<double, double> step(Engine& engine) {
    ChainPass pass(engine.chain_run(), context, {});
    pass.backward(0.1);
    const double before = pass.result().item<double>();
    engine.update({.lr = 0.05}, pass.result().detach()).wait();
    return {before, engine.evaluate(context).item<double>()};
  }
};

std::pair<double, double> undisturbed(bool lora) {
  Bench bench;
  std::pair<double, double> losses;
  bench.run(lora, [&](auto& engine) { losses = bench.step(*engine); });
  return losses;
}

class Disturbed : public ::testing::TestWithParam<bool> {};

TEST_P(Disturbed, APassWithoutBackwardLeavesNothing) {
  Bench bench;
  bench.run(GetParam(), [&](auto& engine) {
    ChainPass left(engine->chain_run(), bench.context, {});
    EXPECT_EQ(bench.step(*engine), undisturbed(GetParam()));
    EXPECT_THROW(left.backward(1), InternalError) << "its weights have changed";
  });
}

TEST_P(Disturbed, APassHasOneBackward) {
  Bench bench;
  bench.run(GetParam(), [&](auto& engine) {
    ChainPass pass(engine->chain_run(), bench.context, {});
    pass.backward(0.1);
    EXPECT_THROW(pass.backward(0.1), InternalError);
    engine->update({.lr = 0.05}, pass.result().detach()).wait();
    EXPECT_EQ(engine->evaluate(bench.context).template item<double>(), undisturbed(GetParam()).second);
  });
}

TEST_P(Disturbed, MicroBatchesHaveTheirBackwardInOrder) {
  Bench bench;
  bench.run(GetParam(), [&](auto& engine) {
    ChainPass first(engine->chain_run(), bench.context, {true, false}),
        last(engine->chain_run(), bench.context, {false, true});
    EXPECT_THROW(last.backward(0.05), InternalError);
    first.backward(0.05);
    ChainPass again(engine->chain_run(), bench.context, {false, true});
    again.backward(0.05);
    engine->update({.lr = 0.05}, again.result().detach()).wait();
    EXPECT_NEAR(engine->evaluate(bench.context).template item<double>(), undisturbed(GetParam()).second, 1e-12);
  });
}

TEST_P(Disturbed, APassMayOutliveItsEngine) {
  Bench bench;
  bench.run(GetParam(), [&](auto& engine) {
    ChainPass pass(engine->chain_run(), bench.context, {});
    engine.reset();
    EXPECT_THROW(pass.backward(1), InternalError);
  });
}

// Fails at each place where a unit's weights are acquired, forward and backward.
TEST_P(Disturbed, AFaultLeavesNothing) {
  const auto expected = undisturbed(GetParam());
  int faults = 0;
  for (int call = 0; call < 12; ++call) {
    Bench bench;
    bench.run(GetParam(), [&](auto& engine) {
      bench.fails_in = call;
      try {
        ChainPass(engine->chain_run(), bench.context, {}).backward(0.3);
      } catch (const Error&) {
        ++faults;
        bench.fails_in = -1;
        EXPECT_EQ(bench.step(*engine), expected) << "call " << call;
      }
      bench.fails_in = -1;
    });
  }
  EXPECT_GE(faults, 6);
}

INSTANTIATE_TEST_SUITE_P(Models, Disturbed, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "lora" : "whole"; });

}  // namespace
}  // namespace zero::testing
