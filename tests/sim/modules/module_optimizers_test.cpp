// Optimizers over parameters of any shape: the same steps at every stage, number of ranks and after a state is loaded,
// with the groups' own rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace {

using Parameters = std::map<std::string, at::Tensor>;

/// Parameters of no to four dimensions, and two without elements.
struct ShapesImpl : torch::nn::Module {
  ShapesImpl() {
    add("scalar", {});
    add("one", {1});
    add("vector", {5});
    add("matrix", {3, 4});
    add("cube", {2, 3, 4});
    add("kernel", {5, 3, 3, 3});
    add("empty", {0});
    add("no_rows", {0, 3});
  }
  at::Tensor forward(double x) {
    at::Tensor loss = torch::zeros({}, torch::kDouble);
    for (const at::Tensor& p : parameters()) loss = loss + ((p + x).sin() * p).sum() * x;
    return loss;
  }

 private:
  void add(const std::string& name, at::IntArrayRef shape) {
    const at::Tensor numbers = torch::arange(c10::multiply_integers(shape), torch::kDouble);
    register_parameter(name, (numbers * 1.7 + double(parameters().size())).sin().view(shape));
  }
};
TORCH_MODULE(Shapes);

std::vector<OptimizerSettings> every_optimizer() {
  ProdigyOptions prodigy;
  prodigy.d0 = 1e-3;
  return {AdamWOptions{.lr = 0.01}, AdamW8bitOptions{.lr = 0.01}, SgdOptions{.lr = 0.01},
          LionOptions{.lr = 0.01},  AdafactorOptions{.lr = 0.01}, prodigy,
          MuonOptions{.lr = 0.01}};
}

Parameters parameters_of(ShardedModel& model) {
  Parameters found;
  model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { found[name] = value.clone(); });
  return found;
}

/// Seven steps, an odd number, so that equal steps do not cancel. With a folder, a second model continues from the
/// state of the first after step 3.
Parameters trained(const OptimizerSettings& settings, int stage, int ranks, const std::string& folder = "") {
  Parameters result;
  on_ranks(ranks, [&](const World& world) {
    const auto train = [&](int begin, int end) {
      Sharded<Shapes> model(Shapes(), world, {.stage = stage});
      ShardedOptimizer optimizer = model.optimizer(settings);
      if (begin > 0) model.load_state(folder);
      for (int step = begin; step < end; ++step) {
        model.backward(model->forward(0.5 + step));
        EXPECT_TRUE(optimizer.step().taken);
      }
      if (end == 3) model.save_state(folder);
      const Parameters found = parameters_of(model);
      if (world.is_main()) result = found;
    };
    if (folder.empty()) return train(0, 7);
    train(0, 3);
    train(3, 7);
  });
  return result;
}

void expect_near(const Parameters& got, const Parameters& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, value] : expected)
    EXPECT_TRUE(at::allclose(got.at(name), value, tolerance, tolerance)) << name;
}

class ModuleOptimizers : public ::testing::TestWithParam<int> {
 protected:
  OptimizerSettings settings() const { return every_optimizer()[std::size_t(GetParam())]; }
};

TEST_P(ModuleOptimizers, TakeTheSameStepsOnEveryLayout) {
  const Parameters expected = trained(settings(), 0, 1);
  const Shapes start;
  for (const auto& parameter : start->named_parameters())
    EXPECT_EQ(at::equal(parameter.value(), expected.at(parameter.key())), parameter.value().numel() == 0)
        << parameter.key();
  for (int stage = 0; stage < 4; ++stage)
    for (const int ranks : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE("stage " + std::to_string(stage) + ", ranks " + std::to_string(ranks));
      expect_near(trained(settings(), stage, ranks), expected, 1e-12);
    }
}

TEST_P(ModuleOptimizers, GoOnWithAStateOfEveryShape) {
  const std::string folder = ::testing::TempDir() + "zero-module-optimizers-" + std::to_string(::getpid());
  for (const int stage : {0, 3}) {
    std::filesystem::remove_all(folder);
    expect_near(trained(settings(), stage, 2, folder), trained(settings(), stage, 2), 0);
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(All, ModuleOptimizers, ::testing::Range(0, int(every_optimizer().size())));

struct BufferedImpl : torch::nn::Module {
  explicit BufferedImpl(std::int64_t size) {
    register_parameter("weight", torch::ones({3}));
    register_buffer("seen", torch::zeros({size}));
  }
};
TORCH_MODULE(Buffered);

// Numbers that another version keeps, or a buffer of another size, do not count as damage to the file.
TEST(ModuleStates, NumbersOfAnotherCountAreRefused) {
  const std::string folder = ::testing::TempDir() + "zero-module-buffers-" + std::to_string(::getpid());
  std::filesystem::remove_all(folder);
  on_ranks(2, [&](const World& world) {
    Sharded<Buffered> two(Buffered(2), world, {.stage = 1});
    two.optimizer(AdafactorOptions());
    two.save_state(folder);
  });
  on_ranks(2, [&](const World& world) {
    Sharded<Buffered> three(Buffered(3), world, {.stage = 1});
    three.optimizer(AdafactorOptions());
    EXPECT_THAT(message_of<InputError>([&] { three.load_state(folder); }),
                ::testing::HasSubstr("holds no buffer:seen, Float [3]"));
    EXPECT_TRUE(three.has_state(folder));
  });
  std::filesystem::remove_all(folder);
}

/// How far Lion, which steps by the rate, moves the vector and the rest.
struct Moves {
  double vector, rest;
};

Moves moves_of(const LionOptions& settings, const std::function<void(ShardedOptimizer&)>& step) {
  Moves moves{};
  on_ranks(2, [&](const World& world) {
    Shapes net;
    const at::Tensor vector = net->named_parameters()["vector"].detach().clone(),
                     matrix = net->named_parameters()["matrix"].detach().clone();
    Sharded<Shapes> model(net, world, {.stage = 3});
    ShardedOptimizer optimizer = model.optimizer(settings);
    model.backward(model->forward(0.5));
    step(optimizer);
    Parameters after = parameters_of(model);
    if (!world.is_main()) return;
    moves = {(after["vector"] - vector).abs().max().item<double>(),
             (after["matrix"] - matrix).abs().max().item<double>()};
  });
  return moves;
}

TEST(ModuleGroups, KeepTheirRatioToTheRateOfAStep) {
  const auto expect = [](double lr, const std::function<void(ShardedOptimizer&)>& step, double vector, double rest) {
    const LionOptions settings{
        .lr = lr, .weight_decay = 0, .groups = {{.match = {"vector"}, .optimizer = {}, .lr = 0.125}}};
    const Moves moves = moves_of(settings, step);
    EXPECT_NEAR(moves.vector, vector, 1e-12);
    EXPECT_NEAR(moves.rest, rest, 1e-12);
  };
  const auto step = [](ShardedOptimizer& optimizer) { optimizer.step(); };
  const auto step_at = [](double lr) { return [lr](ShardedOptimizer& optimizer) { optimizer.step(lr); }; };
  expect(0.5, step, 0.125, 0.5);
  expect(0.5, step_at(0.25), 0.0625, 0.25);
  expect(0.5, step_at(0), 0, 0);
  // A rate of 0 has no ratio to another: the group has its own.
  expect(0, step, 0.125, 0);
  expect(0, step_at(0), 0.125, 0);
  expect(0, step_at(0.25), 0.125, 0.25);
}

}  // namespace
}  // namespace zero::testing
