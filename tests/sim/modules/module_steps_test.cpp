// If a step is aborted, or mixed with another one, the model's next step is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace module_steps_test {

struct PairImpl : torch::nn::Module {
  PairImpl() {
    first = register_module("first", torch::nn::Linear(4, 4));
    second = register_module("second", torch::nn::Linear(4, 2));
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters())
      parameter.copy_(torch::arange(parameter.numel()).sin().view(parameter.sizes()));
  }
  at::Tensor forward(const at::Tensor& x) { return second(torch::relu(first(x))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(Pair);
using Model = Sharded<Pair>;

at::Tensor input() { return torch::ones({3, 4}); }
at::Tensor loss_of(Model& model) { return model(input()).sum(); }

/// The pending gradients are those of LibTorch alone.
void expect_gradients(Model& model) {
  Pair alone;
  alone->forward(input()).sum().backward();
  model.for_each_gradient([&](const std::string& name, const at::Tensor& value) {
    EXPECT_TRUE(at::allclose(value, alone->named_parameters()[name].grad())) << name;
  });
}

class ModuleSteps : public ::testing::TestWithParam<int> {
 protected:
  void run(const std::function<void(Model&, ShardedOptimizer&)>& body) const {
    on_ranks(2, [&](const World& world) {
      Model model(Pair(), world, {.stage = GetParam()});
      ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
      body(model, optimizer);
    });
  }
};

TEST_P(ModuleSteps, ALossThatIsRefusedEndsTheStepAlone) {
  run([](Model& model, ShardedOptimizer& optimizer) {
    {
      const Accumulation part = model.accumulate(2);
      model.backward(loss_of(model));
    }
    {
      const Accumulation part = model.accumulate(2);
      EXPECT_THROW(model.backward(model(input())), InputError);
    }
    model.backward(loss_of(model));
    expect_gradients(model);
    EXPECT_TRUE(optimizer.step().taken);
  });
}

TEST_P(ModuleSteps, AMicroBatchWithoutABackwardIsNone) {
  run([](Model& model, ShardedOptimizer& optimizer) {
    { const Accumulation skipped = model.accumulate(2); }
    model.backward(loss_of(model));
    EXPECT_TRUE(optimizer.step().taken);
    for (int micro = 0; micro < 5; ++micro) {
      const Accumulation part = model.accumulate(3, micro == 2);
      EXPECT_EQ(part.is_last(), micro == 2 || micro == 4);
      if (micro == 0 || micro == 2) continue;
      model.backward(loss_of(model));
      EXPECT_EQ(optimizer.step().taken, micro == 4);
    }
  });
}

TEST_P(ModuleSteps, AWeightThatIsNoNumberOfRowsIsRefused) {
  run([](Model& model, ShardedOptimizer& optimizer) {
    for (const double weight : {-1.0, double(NAN), std::numeric_limits<double>::infinity()})
      EXPECT_THROW(model.backward(loss_of(model), weight), InputError) << weight;
    model.backward(loss_of(model));
    EXPECT_TRUE(optimizer.step().taken);
  });
}

TEST_P(ModuleSteps, AStateMayBeLoadedInTheMiddleOfOne) {
  const std::string folder = ::testing::TempDir() + "zero-module-steps-" + std::to_string(::getpid());
  std::filesystem::remove_all(folder);
  run([&](Model& model, ShardedOptimizer& optimizer) {
    model.save_state(folder);
    {
      const Accumulation part = model.accumulate(2);
      model.backward(loss_of(model));
    }
    model.load_state(folder);
    model.backward(loss_of(model));
    expect_gradients(model);
    EXPECT_TRUE(optimizer.step().taken);
  });
  std::filesystem::remove_all(folder);
}

TEST_P(ModuleSteps, WeightsOfZeroEverywhereEndTheStep) {
  run([](Model& model, ShardedOptimizer& optimizer) {
    model.backward(loss_of(model), 0);
    EXPECT_THROW(optimizer.step(), InputError);
    model.backward(loss_of(model), 0);
    EXPECT_THROW(model.for_each_gradient([](const std::string&, const at::Tensor&) {}), InputError);
    model.backward(loss_of(model), 3);
    EXPECT_TRUE(optimizer.step().taken);
  });
}

// One exchanges the step terms, weights included; the other sums the norm.
TEST_P(ModuleSteps, AStepHasTwoCollectivesInAdditionToThoseOfStates) {
  for (const bool weighted : {false, true}) {
    int calls = 0;
    on_ranks(2, [&](const World& world) {
      Model model(Pair(), world, {.stage = GetParam()});
      ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
      weighted ? model.backward(loss_of(model), 2) : model.backward(loss_of(model));
      if (world.is_main())
        world.impl().ranks->set_observer([&](const CallRecord& call) { calls += call.tag.phase == Phase::optimizer; });
      optimizer.step();
    });
    EXPECT_EQ(calls, 2) << weighted;
  }
}

// A refusal leaves nothing half done: the pending step continues.
TEST_P(ModuleSteps, WorkOfTheMainProcessMayNotUseTheModel) {
  run([](Model& model, ShardedOptimizer& optimizer) {
    at::Tensor loss;
    const auto expect_refused = [&](const std::function<void()>& use) {
      EXPECT_THAT(message_of<InputError>([&] { model.world().on_main(use); }),
                  ::testing::HasSubstr("inside work that one rank does"));
    };
    const auto expect_use_refused = [&] {
      expect_refused([&] { model(input()); });
      expect_refused([&] { (void)model->second->weight.sum(); });
      expect_refused([&] { model.for_each_parameter([](const std::string&, const at::Tensor&) {}); });
    };
    expect_use_refused();
    for (int micro = 0; micro < 2; ++micro) {
      const Accumulation part = model.accumulate(2);
      loss = loss_of(model);
      expect_use_refused();
      expect_refused([&] { model.backward(loss); });
      model.backward(loss);
    }
    expect_refused([&] { optimizer.step(); });
    expect_refused([&] { model.for_each_gradient([](const std::string&, const at::Tensor&) {}); });
    expect_gradients(model);
    EXPECT_TRUE(optimizer.step().taken);
  });
}

/// The results of a step: the norm, gradients and new parameters.
std::map<std::string, at::Tensor> step_of(Model& model, ShardedOptimizer& optimizer,
                                          const std::vector<double>& inputs) {
  for (std::size_t micro = 0; micro < inputs.size(); ++micro) {
    const Accumulation part = model.accumulate(int(inputs.size()));
    model.backward(model(input() * inputs[micro]).sum());
  }
  std::map<std::string, at::Tensor> result;
  model.for_each_gradient(
      [&](const std::string& name, const at::Tensor& value) { result["gradient of " + name] = value.clone(); });
  result["norm"] = at::scalar_tensor(optimizer.step().grad_norm);
  model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { result[name] = value.clone(); });
  return result;
}

// Each micro-batch counts equally on any process. If gradients are reduced per micro-batch, calls would differ.
TEST_P(ModuleSteps, ProcessesMayHaveDifferentNumbersOfMicroBatches) {
  const std::vector<double> first{1, 2, 3}, second{4, 5}, all{1, 2, 3, 4, 5};
  const auto run_on = [](int ranks, int stage, const std::function<const std::vector<double>&(int rank)>& inputs_of) {
    std::vector<std::map<std::string, at::Tensor>> results(static_cast<std::size_t>(ranks));
    on_ranks(ranks, [&](const World& world) {
      Model model(Pair(), world, {.stage = stage});
      ShardedOptimizer optimizer = model.optimizer(SgdOptions{.lr = 0.1});
      results[std::size_t(world.rank())] = step_of(model, optimizer, inputs_of(world.rank()));
    });
    return results;
  };
  const auto on_two = [&] {
    return run_on(2, GetParam(), [&](int rank) -> const std::vector<double>& { return rank == 0 ? first : second; });
  };
  if (GetParam() >= 2) {
    EXPECT_THAT(on_two, ::testing::ThrowsMessage<std::exception>(::testing::HasSubstr("mismatch of collectives")));
    return;
  }
  const auto want = run_on(1, 0, [&](int) -> const std::vector<double>& { return all; }).front();
  for (const auto& result : on_two())
    for (const auto& [name, value] : result) EXPECT_TRUE(at::allclose(value, want.at(name))) << name;
}

TEST_P(ModuleSteps, GradientsOfOtherBackwardsAreNotOfTheStep) {
  on_ranks(2, [&](const World& world) {
    Pair net;
    net->forward(input()).sum().backward();  // before it is sharded
    Model model(net, world, {.stage = GetParam()});
    model.optimizer(AdamWOptions());
    EXPECT_THROW(loss_of(model).backward(), InputError);  // refused, with gradients in some leaves
    model.backward(loss_of(model));
    expect_gradients(model);
  });
}

TEST_P(ModuleSteps, AGraphOfOldWeightsHasNoBackward) {
  run([](Model& model, ShardedOptimizer& optimizer) {
    const at::Tensor old = loss_of(model);
    model.backward(loss_of(model));
    optimizer.step();
    EXPECT_THAT([&] { model.backward(old); },
                ::testing::ThrowsMessage<c10::Error>(::testing::HasSubstr("modified by an inplace operation")));
  });
}

TEST_P(ModuleSteps, ALossOfNoParameterIsRefused) {
  run([](Model& model, ShardedOptimizer&) {
    const at::Tensor own = torch::ones({3}, torch::requires_grad());
    EXPECT_THAT(
        [&] { model.backward(own.sum()); },
        ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("depends on no trained parameter of this model")));
    model.backward(loss_of(model));
    expect_gradients(model);
  });
}

TEST_P(ModuleSteps, FreezingAfterShardingIsRefused) {
  run([](Model& model, ShardedOptimizer&) {
    model->first->weight.set_requires_grad(false);
    EXPECT_THAT([&] { model.backward(loss_of(model)); }, ::testing::ThrowsMessage<InputError>(::testing::HasSubstr(
                                                             "first.weight was frozen after the module was sharded")));
    model->first->weight.set_requires_grad(true);
    model.backward(loss_of(model));
    expect_gradients(model);
  });
  on_ranks(2, [&](const World& world) {
    Pair net;
    net->first->weight.set_requires_grad(false);
    Model model(net, world, {.stage = GetParam()});
    model.optimizer(AdamWOptions());
    net->first->weight.set_requires_grad(true);
    EXPECT_THAT([&] { model.backward(loss_of(model)); },
                ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("first.weight was unfrozen")));
  });
}

TEST_P(ModuleSteps, AStepThatIsNotFiniteIsNotTakenAndTheNextIs) {
  run([](Model& model, ShardedOptimizer& optimizer) {
    const double infinity = std::numeric_limits<double>::infinity();
    model.backward(loss_of(model) * (model.world().rank() == 1 ? infinity : 1.0));
    EXPECT_FALSE(optimizer.step().taken);
    model.backward(loss_of(model));
    expect_gradients(model);
    EXPECT_TRUE(optimizer.step().taken);
    EXPECT_EQ(optimizer.steps_taken(), 1);
  });
}

// After load() an optimizer has forgotten all earlier steps.
TEST_P(ModuleSteps, AnOptimizerBeginsAnewWithLoadedWeights) {
  const std::string path = ::testing::TempDir() + "zero-module-steps-" + std::to_string(::getpid()) + ".safetensors";
  const auto step = [](Model& model, ShardedOptimizer& optimizer) {
    model.backward(loss_of(model));
    optimizer.step();
  };
  const auto weights_of = [](Model& model) {
    std::map<std::string, at::Tensor> weights;
    model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { weights[name] = value.clone(); });
    return weights;
  };
  run([&](Model& model, ShardedOptimizer& optimizer) {
    model.save(path);
    step(model, optimizer);
    const auto want = weights_of(model);
    for (int more = 0; more < 3; ++more) step(model, optimizer);
    model.load(path);
    EXPECT_EQ(optimizer.steps_taken(), 0);
    step(model, optimizer);
    for (const auto& [name, value] : weights_of(model)) EXPECT_TRUE(at::equal(value, want.at(name))) << name;
  });
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Stages, ModuleSteps, ::testing::Values(0, 1, 2, 3));

// 1001 is 1000 in bf16: what gradients are multiplied by is what they are divided by.
TEST(ModuleSteps, WeightsRoundAsTheLossDoes) {
  on_ranks(1, [](const World& world) {
    Model model(Pair(), world, {.precision = bf16});
    model.optimizer(AdamWOptions());
    model.backward(model(input().narrow(0, 0, 1).to(bf16)).sum(), 1001);
    model.for_each_gradient([](const std::string& name, const at::Tensor& value) {
      if (name == "second.bias") {
        EXPECT_TRUE(at::equal(value, torch::ones({2}))) << value;
      }
    });
  });
}

}  // namespace module_steps_test
}  // namespace zero::testing
