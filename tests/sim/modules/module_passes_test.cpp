// Loops that are not forward and backward in turn: evaluation in between, recomputed sections, several forwards before
// one backward. Also the memory that a rank holds meanwhile.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>

#include "base/memory_tracker.h"
#include "offload/memory/cpu_allocator.h"
#include "tests/sim/modules/library_world.h"
#include "zero/library/include/zero/nn/convert_sync_batchnorm.h"
#include "zero/library/include/zero/recompute.h"

namespace zero::testing {
namespace {

struct LayerImpl : torch::nn::Module {
  explicit LayerImpl(int width) {
    linear = register_module("linear", torch::nn::Linear(width, width));
    dropout = register_module("dropout", torch::nn::Dropout(0.25));
  }
  at::Tensor forward(const at::Tensor& x) { return x + dropout(torch::tanh(linear(x))); }
  torch::nn::Linear linear{nullptr};
  torch::nn::Dropout dropout{nullptr};
};
TORCH_MODULE(Layer);

struct TowerImpl : torch::nn::Module {
  explicit TowerImpl(int width, int layers = 4) : width(width) {
    list = register_module("list", torch::nn::ModuleList());
    for (int i = 0; i < layers; ++i) list->push_back(Layer(width));
    const torch::NoGradGuard no_grad;
    int i = 0;
    for (at::Tensor& parameter : parameters())
      parameter.copy_((torch::arange(parameter.numel()).to(torch::kFloat) + ++i).sin().view(parameter.sizes()) * 0.1);
  }
  at::Tensor forward(at::Tensor x, bool recomputes = false) {
    for (const auto& entry : *list) {
      Layer layer(std::dynamic_pointer_cast<LayerImpl>(entry));
      x = recomputes ? recompute(layer, x) : layer(x);
    }
    return x;
  }
  int width;
  torch::nn::ModuleList list{nullptr};
};
TORCH_MODULE(Tower);

/// Weights of rank 0 after some steps, each of which `loss` makes.
using MakeLoss = std::function<at::Tensor(Sharded<Tower>&, const at::Tensor& x)>;
std::vector<at::Tensor> train(int ranks, int stage, const MakeLoss& loss) {
  std::vector<at::Tensor> weights;
  on_ranks(ranks, [&](const World& world) {
    Sharded<Tower> model(Tower(8), world, {.stage = stage});
    ShardedOptimizer optimizer = model.optimizer(AdamWOptions{.lr = 1e-2});
    for (int step = 0; step < 3; ++step) {
      if (ranks == 1) torch::manual_seed(step);
      model.backward(loss(model, torch::full({2, 8}, 0.1f * float(step + world.rank()))));
      optimizer.step();
    }
    model.for_each_parameter([&](const std::string&, const at::Tensor& value) {
      if (world.is_main()) weights.push_back(value.clone());
    });
  });
  return weights;
}

void expect_equal(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], other[i])) << i;
}

at::Tensor plain(Sharded<Tower>& model, const at::Tensor& x) {
  model->eval();
  return model->forward(x).pow(2).mean();
}

TEST(ModulePasses, EvaluationBetweenForwardAndBackwardChangesNothing) {
  for (const int stage : {0, 2, 3})
    expect_equal(train(3, stage, plain), train(3, stage, [](Sharded<Tower>& model, const at::Tensor& x) {
                   const at::Tensor loss = plain(model, x);
                   const torch::NoGradGuard no_grad;
                   EXPECT_TRUE(at::equal(model->forward(x).pow(2).mean(), loss));
                   return loss;
                 }));
}

TEST(ModulePasses, SectionsAreRecomputed) {
  const auto recomputed = [](Sharded<Tower>& model, const at::Tensor& x) {
    model->eval();
    return model->forward(x, true).pow(2).mean();
  };
  for (const int stage : {0, 2, 3}) expect_equal(train(3, stage, plain), train(3, stage, recomputed));
}

TEST(ModulePasses, RecomputedSectionsDrawTheSameRandomNumbers) {
  const auto with_dropout = [](bool recomputes) {
    return [recomputes](Sharded<Tower>& model, const at::Tensor& x) {
      model->train();
      return model->forward(x, recomputes).pow(2).mean();
    };
  };
  expect_equal(train(1, 0, with_dropout(false)), train(1, 0, with_dropout(true)));
}

TEST(ModulePasses, ARecomputationThatFailsLeavesTheRandomNumbers) {
  torch::manual_seed(3);
  int runs = 0;
  const auto body = [&](const at::Tensor& x) {
    const at::Tensor y = x * at::rand({2});
    if (++runs == 2) throw std::runtime_error("in the middle");
    return y;
  };
  const at::Tensor y = recompute_section(body, torch::ones({2}, torch::requires_grad()), {});
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state();
  EXPECT_THROW(y.sum().backward(), std::runtime_error);
  EXPECT_TRUE(at::equal(generator.get_state(), before));
}

TEST(ModulePasses, SeveralForwardsMayComeBeforeOneBackward) {
  const auto twice = [](Sharded<Tower>& model, const at::Tensor& x) {
    model->eval();
    return model->forward(x).pow(2).mean() + model->forward(x * 2).mean();
  };
  expect_equal(train(2, 0, twice), train(2, 3, twice));
}

// With one micro-batch the stages agree to the last bit, in bf16 too.
TEST(ModulePasses, StagesAgreeToTheLastBitInBf16) {
  const auto weights_of = [](int stage) {
    std::vector<at::Tensor> weights;
    on_ranks(4, [&](const World& world) {
      Sharded<Tower> model(Tower(8), world, {.stage = stage, .precision = bf16});
      ShardedOptimizer optimizer = model.optimizer(AdamWOptions{.lr = 1e-2});
      optimizer.clip(0.1);
      model->eval();
      for (int step = 0; step < 4; ++step) {
        model.backward(model->forward(torch::full({2, 8}, 0.1f * float(step + world.rank())).to(bf16)).pow(2).mean());
        optimizer.step();
      }
      model.for_each_parameter([&](const std::string&, const at::Tensor& value) {
        if (world.is_main()) weights.push_back(value.clone());
      });
    });
    return weights;
  };
  const std::vector<at::Tensor> want = weights_of(0);
  EXPECT_EQ(want.front().scalar_type(), at::kFloat);
  for (const int stage : {1, 2, 3}) expect_equal(want, weights_of(stage));
}

// fp32: at rest a rank has a third of weights, gradients and two moments, and the buffers that weights and gradients
// pass.
TEST(ModulePasses, ARankHoldsItsPartAndTheOpenUnits) {
  constexpr int ranks = 3, width = 96, layers = 6;
  constexpr std::int64_t unit = 4 * (width * width + width), model_bytes = layers * unit;
  CpuAllocator allocator;
  allocator.install();
  std::array<MemoryTracker, ranks> trackers;
  on_ranks(ranks, [&](const World& world) {
    MemoryTracker& tracker = trackers[std::size_t(world.rank())];
    const TrackerScope scope(tracker);
    Sharded<Tower> model(Tower(width, layers), world, {.stage = 3, .open_groups = 2});
    ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
    for (int step = 0; step < 2; ++step) {
      model->eval();
      model.backward(model->forward(torch::ones({2, width})).sum());
      optimizer.step();
    }
    const auto near = [&](MemoryCategory category, std::int64_t bytes) {
      EXPECT_GE(tracker.live(category), bytes) << int(category);
      EXPECT_LE(tracker.live(category), bytes + layers * 1024) << int(category);
    };
    near(MemoryCategory::parameters, model_bytes / ranks);
    near(MemoryCategory::gradients, model_bytes / ranks);
    near(MemoryCategory::optimizer, 2 * model_bytes / ranks);
    near(MemoryCategory::buffers, 3 * unit);
  });
}

struct NormedImpl : torch::nn::Module {
  NormedImpl() {
    linear = register_module("linear", torch::nn::Linear(8, 6));
    norm = register_module("norm", torch::nn::BatchNorm1d(6));
    const torch::NoGradGuard no_grad;
    linear->weight.copy_(torch::arange(48).sin().view({6, 8}));
    linear->bias.zero_();
    norm->weight.copy_(torch::arange(6).cos());
    norm->bias.copy_(torch::arange(6) * 0.25);
  }
  at::Tensor forward(const at::Tensor& x) { return norm(linear(x)); }
  torch::nn::Linear linear{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Normed);

/// On one process, the norm in fp32.
struct NormedRun {
  explicit NormedRun(const at::Tensor& data) {
    net->linear->to(bf16);
    trained = net->forward(data);
    torch::mse_loss(trained.to(torch::kFloat), torch::ones_like(trained, torch::kFloat)).backward();
    net->eval();
    evaluated = net->forward(data);
  }
  at::Tensor gradient_of(const std::string& name) const { return net->named_parameters()[name].grad(); }
  Normed net;
  at::Tensor trained, evaluated;
};

// LibTorch refuses bf16 weights with fp32 running statistics, which buffers keep.
TEST(ModulePasses, OrdinaryNormsOfBf16KeepTheirStatisticsInFp32) {
  const at::Tensor data = torch::arange(40).to(torch::kFloat).sin().view({5, 8}).to(bf16);
  const auto distance = [](const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); };
  for (const bool converted : {false, true}) {
    const NormedRun alone(converted ? data.repeat({2, 1}) : data);
    for (const int stage : {0, 3}) {
      SCOPED_TRACE(::testing::Message() << "stage " << stage << (converted ? ", converted" : ""));
      on_ranks(2, [&](const World& world) {
        Normed net;
        if (converted) nn::convert_sync_batchnorm(*net, world);
        Sharded<Normed> model(net, world, {.stage = stage, .precision = bf16});
        ShardedOptimizer optimizer = model.optimizer(SgdOptions{.lr = 0});
        const at::Tensor y = model->forward(data);
        EXPECT_EQ(y.scalar_type(), bf16);
        EXPECT_LT(distance(y, alone.trained.slice(0, 0, 5)), 0.03);
        model.backward(torch::mse_loss(y.to(torch::kFloat), torch::ones_like(y, torch::kFloat)));
        model.for_each_gradient([&](const std::string& name, const at::Tensor& gradient) {
          if (!name.starts_with("norm.")) return;
          EXPECT_LT(distance(gradient, alone.gradient_of(name)), 0.01) << name;
        });
        optimizer.step();
        EXPECT_LT(distance(net->norm->running_mean, alone.net->norm->running_mean), 1e-5);
        net->eval();
        const torch::NoGradGuard no_grad;
        EXPECT_LT(distance(model->forward(data), alone.evaluated.slice(0, 0, 5)), 0.03);
      });
    }
  }
}

}  // namespace
}  // namespace zero::testing
