// When weights are unsharded and resharded: what a pass gathers, what its trace prefetches, what is held at once.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "comm/sim/sim_world.h"
#include "zero/modules/sharded_module.h"

namespace zero::testing {
namespace unsharded_cache_test {

struct StackImpl : torch::nn::Module {
  explicit StackImpl(int layers) {
    list = register_module("list", torch::nn::ModuleList());
    for (int i = 0; i < layers; ++i) list->push_back(torch::nn::Linear(8, 8));
  }
  at::Tensor forward(at::Tensor x) {
    for (const auto& layer : *list) x = torch::tanh(layer->as<torch::nn::Linear>()->forward(x));
    return x;
  }
  torch::nn::ModuleList list{nullptr};
};
TORCH_MODULE(Stack);

StatesOptions options_for(bool overlap) {
  StatesOptions options;
  options.plan = ShardPlan::for_stage(3);
  options.precision = {at::kFloat, at::kFloat, at::kFloat, at::kFloat};
  options.overlap = overlap;
  options.open_groups = overlap ? 1 : 2;
  return options;
}

/// A rank's gathers and reductions in each of some steps, as "forward2 backward1 reduce1 ...".
std::vector<std::string> calls_of_steps(bool overlap, int steps, const std::function<at::Tensor(StackImpl&, int)>& loss,
                                        std::int64_t* changes = nullptr) {
  SimWorld world(2);
  world.run([&](Communicator& communicator, int rank) {
    Stack net(4);
    Mesh mesh(communicator);
    ShardedModule model(*net, ModuleUnits(*net), mesh, options_for(overlap));
    for (int step = 0; step < steps; ++step) {
      communicator.barrier({Phase::other});
      model.backward(loss(*net, step), 1, {true, true});
      model.update({.lr = 0.1, .max_norm = 0, .loss_scale = 2});
    }
    if (rank == 0 && changes) *changes = model.open_groups().plan().changes();
  });
  std::vector<std::string> found;
  for (const SimCall& call : world.calls(0)) {
    const Phase phase = call.call.tag.phase;
    if (call.call.kind == CollectiveKind::barrier) found.emplace_back();
    if (found.empty() || (phase != Phase::forward && phase != Phase::backward && phase != Phase::reduce)) continue;
    found.back() +=
        (found.back().empty() ? "" : " ") + std::string(name_of(phase)) + std::to_string(call.call.tag.unit);
  }
  return found;
}

at::Tensor whole(StackImpl& net, int) { return net.forward(torch::ones({2, 8})).sum(); }

// The last two units are there when backward comes to them; the first one's input needs no gradient, and so no weights.
TEST(UnshardedCache, UnshardsMissingGroups) {
  const auto calls = calls_of_steps(false, 2, whole);
  ASSERT_EQ(calls.size(), 2u);
  for (const std::string& step : calls)
    EXPECT_EQ(step, "forward0 forward1 forward2 forward3 reduce3 reduce2 backward1 reduce1 reduce0");
}

// From the second step on a unit is on its way while the one before it is at work: ahead of that one's sum.
TEST(UnshardedCache, PrefetchesTheGroupsOfTheLastPass) {
  const auto calls = calls_of_steps(true, 3, whole);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0], "forward0 forward1 forward2 forward3 reduce3 reduce2 backward1 reduce1 reduce0");
  EXPECT_EQ(calls[1], "forward0 forward1 forward2 forward3 reduce3 backward1 reduce2 reduce1 reduce0");
  EXPECT_EQ(calls[2], calls[1]);
}

// docs/design.md, section 5. The first unit's backward reads no weights.
TEST(UnshardedCache, GathersOfAStepFollowTheFormula) {
  constexpr int units = 6;
  for (const int buffers : {1, 2, 3})
    for (const int micro_batches : {1, 3}) {
      SimWorld world(2);
      world.run([&](Communicator& communicator, int) {
        Stack net(units);
        Mesh mesh(communicator);
        StatesOptions options = options_for(false);
        options.open_groups = buffers;
        ShardedModule model(*net, ModuleUnits(*net), mesh, options);
        for (int a = 0; a < micro_batches; ++a) model.backward(whole(*net, 0), 1, {a == 0, a + 1 == micro_batches});
      });
      int gathers = 0, sums = 0;
      for (const SimCall& call : world.calls(0)) {
        const Phase phase = call.call.tag.phase;
        gathers += phase == Phase::forward || phase == Phase::backward;
        sums += phase == Phase::reduce;
      }
      EXPECT_EQ(gathers, 2 * micro_batches * (units - buffers) + buffers - 1) << buffers << " " << micro_batches;
      EXPECT_EQ(sums, micro_batches * units);
    }
}

TEST(UnshardedCache, NoticesAnotherOrder) {
  std::int64_t changes = 0;
  calls_of_steps(
      true, 4,
      [](StackImpl& net, int step) {
        if (step < 2) return whole(net, step);
        return net.list[3]
            ->as<torch::nn::Linear>()
            ->forward(net.list[0]->as<torch::nn::Linear>()->forward(torch::ones({2, 8})))
            .sum();
      },
      &changes);
  EXPECT_EQ(changes, 1);
}

// The same numbers, whatever is brought ahead.
TEST(UnshardedCache, OverlapChangesNoBit) {
  std::vector<at::Tensor> weights[2];
  for (const bool overlap : {false, true})
    SimWorld(3).run([&](Communicator& communicator, int rank) {
      Stack net(5);
      {
        const torch::NoGradGuard no_grad;
        for (at::Tensor& parameter : net->parameters())
          parameter.copy_(torch::arange(parameter.numel()).sin().view(parameter.sizes()));
      }
      Mesh mesh(communicator);
      ShardedModule model(*net, ModuleUnits(*net), mesh, options_for(overlap));
      for (int step = 0; step < 4; ++step) {
        model.backward(net->forward(torch::full({2, 8}, 0.1 * (rank + step))).pow(2).sum(), 1, {true, true});
        model.update({.lr = 0.1, .max_norm = 1, .loss_scale = 3});
      }
      model.for_each_parameter([&](const std::string&, const at::Tensor& value) {
        if (rank == 0) weights[overlap].push_back(value.clone());
      });
    });
  ASSERT_EQ(weights[0].size(), weights[1].size());
  for (std::size_t i = 0; i < weights[0].size(); ++i) EXPECT_TRUE(at::equal(weights[0][i], weights[1][i])) << i;
}

}  // namespace unsharded_cache_test
}  // namespace zero::testing
