// A module of odd shape, sharded: gradients, steps and weights are those of LibTorch alone on the whole batch.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <mutex>

#include "comm/sim/sim_world.h"
#include "tests/sim/modules/odd_net.h"
#include "zero/library/include/zero/sharded.h"
#include "zero/library/sharded_impl.h"
#include "zero/library/world_impl.h"

namespace zero::testing {
namespace module_parity_test {

constexpr int steps = 5, rows = 7;
bool takes_branch(int step) { return step % 2 == 1; }

struct Result {
  std::vector<double> norms;
  std::map<std::string, at::Tensor> gradients, weights;  // of the first step, after the last
};

/// LibTorch alone. A parameter that a step does not use has a gradient of zeros.
Result reference() {
  OddNet net = make_odd_net();
  std::vector<at::Tensor> trained;
  for (const auto& parameter : net->named_parameters())
    if (parameter.value().requires_grad()) {
      trained.push_back(parameter.value());
      trained.back().mutable_grad() = at::zeros_like(parameter.value());
    }
  torch::optim::SGD optimizer(trained, torch::optim::SGDOptions(0.1).momentum(0.9));
  Result result;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad(/*set_to_none=*/false);
    odd_loss(*net, odd_batch(step, rows, 0, rows), takes_branch(step)).backward();
    if (step == 0)
      for (const auto& parameter : net->named_parameters())
        if (parameter.value().requires_grad()) result.gradients[parameter.key()] = parameter.value().grad().clone();
    result.norms.push_back(torch::nn::utils::clip_grad_norm_(trained, 1.0));
    optimizer.step();
  }
  for (const auto& parameter : net->named_parameters())
    result.weights[parameter.key()] = parameter.value().detach().clone();
  return result;
}

/// Micro-batch m of a rank among all of a step.
OddBatch share(int step, int rank, int ranks, int micro, int micros) {
  const int parts = ranks * micros, part = micro * ranks + rank;
  const int begin = rows * part / parts, end = rows * (part + 1) / parts;
  return odd_batch(step, rows, begin, end - begin);
}

Result sharded(int stage, int ranks, int micros, ShardOptions options = {}) {
  options.stage = stage;
  Result result;
  std::mutex mutex;
  SimWorld(ranks).run([&](Communicator& communicator, int rank) {
    std::unique_lock building(mutex);                 // of the process's one generator
    torch::manual_seed(rank == 0 ? 7 : 1000 + rank);  // what others draw must not matter
    OddNet net;
    building.unlock();
    Sharded<OddNet> model(net, world_of(communicator), options);
    ShardedOptimizer optimizer = model.optimizer(SgdOptions{.lr = 0.1, .nesterov = false});
    optimizer.clip(1.0);
    std::map<std::string, at::Tensor> gradients, weights;
    std::vector<double> norms;
    for (int step = 0; step < steps; ++step)
      for (int micro = 0; micro < micros; ++micro) {
        const Accumulation part = model.accumulate(micros);
        const OddBatch batch = share(step, rank, ranks, micro, micros);
        model.backward(odd_loss(*model.operator->(), batch, takes_branch(step)), double(batch.ids.size(0)));
        if (step == 0 && part.is_last())
          model.for_each_gradient([&](const std::string& name, const at::Tensor& value) { gradients[name] = value; });
        const Step done = optimizer.step();
        EXPECT_EQ(done.taken, part.is_last());
        if (done.taken) norms.push_back(done.grad_norm);
      }
    model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { weights[name] = value.clone(); });
    if (rank == 0) result = {norms, gradients, weights};
  });
  return result;
}

void expect_near(const std::map<std::string, at::Tensor>& got, const std::map<std::string, at::Tensor>& want,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (const auto& [name, value] : want) {
    ASSERT_TRUE(got.contains(name)) << what << ' ' << name;
    EXPECT_LE((got.at(name) - value).abs().max().item<double>(), 1e-12) << what << ' ' << name;
  }
}

class ModuleParity : public ::testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(ModuleParity, EqualsLibTorchAlone) {
  const auto [stage, ranks, micros] = GetParam();
  static const Result want = reference();
  const Result got = sharded(stage, ranks, micros);
  ASSERT_EQ(got.norms.size(), want.norms.size());
  for (int step = 0; step < steps; ++step) EXPECT_NEAR(got.norms[step], want.norms[step], 1e-12) << step;
  expect_near(got.gradients, want.gradients, "gradient");
  expect_near(got.weights, want.weights, "weight");
}

INSTANTIATE_TEST_SUITE_P(Cases, ModuleParity,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Values(1, 2, 3, 4),
                                            ::testing::Values(1, 2)));

TEST(ModuleParity, HoldsForUnitsByPatternAndMoreOpenGroups) {
  const Result want = reference();
  for (const int open : {2, 3, 9})
    for (const std::vector<std::string>& units :
         {std::vector<std::string>{"blocks.*", "embedding"}, {"*"}, {"blocks"}}) {
      ShardOptions options;
      options.units = units;
      options.open_groups = open;
      expect_near(sharded(3, 3, 2, options).weights, want.weights, "weight");
    }
}

TEST(ModuleParity, HoldsForHybridSharding) {
  ShardOptions options;
  options.shard_degree = 2;
  const Result want = reference();
  for (int stage = 1; stage <= 3; ++stage) expect_near(sharded(stage, 4, 2, options).weights, want.weights, "weight");
}

}  // namespace module_parity_test
}  // namespace zero::testing
