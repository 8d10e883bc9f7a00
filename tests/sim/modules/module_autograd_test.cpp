// Gradients that a program requests from autograd itself, apart from model.backward().
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/sim/modules/odd_net.h"

namespace zero::testing {
namespace {

// Each process gets those of its own loss, whole, at every stage. Training is unaffected.
TEST(ModuleAutograd, GradAsksForTheProcessesOwnGradients) {
  for (const int stage : {0, 1, 2, 3})
    on_ranks(2, [&](const World& world) {
      static std::mutex mutex;
      const auto build = [] {
        const std::lock_guard lock(mutex);
        return make_odd_net();
      };
      OddNet alone = build();
      Sharded<OddNet> model(build(), world, {.stage = stage});
      ShardedOptimizer optimizer = model.optimizer(AdamWOptions{.lr = 0.1});
      const OddBatch batch = odd_batch(0, 6, 3 * world.rank(), 3);
      const auto parameters_of = [](OddNetImpl& net) {
        return std::vector<at::Tensor>{net.embedding->weight, net.blocks[0]->as<OddBlock>()->norm->weight,
                                       net.branch->bias, net.temperature};
      };
      const auto want = torch::autograd::grad({odd_loss(*alone, batch, true)}, parameters_of(*alone));
      const auto got =
          torch::autograd::grad({odd_loss(*model.operator->(), batch, true)}, parameters_of(*model.operator->()));
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(at::allclose(got[i], want[i], 1e-12, 1e-12)) << i << " stage " << stage;
      const at::Tensor loss = odd_loss(*model.operator->(), batch, true);
      model.backward(loss);
      EXPECT_TRUE(optimizer.step().taken);
    });
}

}  // namespace
}  // namespace zero::testing
