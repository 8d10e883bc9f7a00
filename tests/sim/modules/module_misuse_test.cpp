// Misuse gives one message with the remedy on every rank, and no hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/sim/modules/two_layers.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace module_misuse_test {

using Model = Sharded<TwoLayers>;
at::Tensor input() { return torch::ones({3, 4}); }

/// The message of the InputError that `misuse` throws on two ranks at a stage.
std::string refusal(int stage, const std::function<void(Model&, ShardedOptimizer&)>& misuse) {
  try {
    on_ranks(2, [&](const World& world) {
      Model model(TwoLayers(), world, {.stage = stage});
      ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
      misuse(model, optimizer);
    });
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Returns the message of any exception.
std::string refusal_of_any(int stage, const std::function<void(Model&, ShardedOptimizer&)>& misuse) {
  try {
    return refusal(stage, misuse);
  } catch (const std::exception& error) {
    return error.what();
  }
}

class Misuse : public ::testing::TestWithParam<int> {
 protected:
  void expect(const std::string& message, const std::function<void(Model&, ShardedOptimizer&)>& misuse) {
    EXPECT_THAT(refusal(GetParam(), misuse), ::testing::HasSubstr(message));
  }
};

TEST_P(Misuse, BackwardTwice) {
  expect("give each micro-batch of a step its model.accumulate(n)", [](Model& model, ShardedOptimizer&) {
    model.backward(model(input()).sum());
    model.backward(model(input()).sum());
  });
}

TEST_P(Misuse, BackwardOfTheLossItself) {
  expect("call model.backward(loss), not loss.backward()",
         [](Model& model, ShardedOptimizer&) { model(input()).sum().backward(); });
}

TEST_P(Misuse, StepWithoutBackward) {
  expect("without a backward() before it", [](Model&, ShardedOptimizer& optimizer) { optimizer.step(); });
}

TEST_P(Misuse, LossOfSeveralElements) {
  expect("take its mean() or sum()", [](Model& model, ShardedOptimizer&) { model.backward(model(input())); });
}

TEST_P(Misuse, LossWithoutGraph) {
  expect("NoGradGuard", [](Model& model, ShardedOptimizer&) {
    const torch::NoGradGuard no_grad;
    model.backward(model(input()).sum());
  });
}

TEST_P(Misuse, ParameterAddedAfterSharding) {
  expect("parameter third.weight was registered after the module was sharded", [](Model& model, ShardedOptimizer&) {
    model->register_module("third", torch::nn::Linear(2, 2));
    model.backward(model(input()).sum());
  });
}

TEST_P(Misuse, WriteToAParameter) {
  expect("aten::fill_ writes to a parameter of unit first", [](Model& model, ShardedOptimizer&) {
    const torch::NoGradGuard no_grad;
    model->first->weight.fill_(1);
  });
  expect("writes to a parameter of unit second",
         [](Model& model, ShardedOptimizer&) { torch::nn::init::normal_(model->second->weight); });
}

TEST_P(Misuse, ConversionAndMoveAfterSharding) {
  const std::string refusal = "to(), half() or set_data() writes to a parameter of unit first, which is sharded";
  expect(refusal, [](Model& model, ShardedOptimizer&) { model->to(torch::kDouble); });
  expect(refusal, [](Model& model, ShardedOptimizer&) { model->to(torch::kHalf); });
  expect(refusal, [](Model& model, ShardedOptimizer&) { model->to(torch::kMeta); });
  expect(refusal, [](Model& model, ShardedOptimizer&) { model->first->weight.set_data(torch::zeros({4, 4})); });
  expect("nothing was thrown", [](Model& model, ShardedOptimizer& optimizer) {
    model->to(model.world().device());  // where it is
    model->to(torch::kFloat);
    model.backward(model(input()).sum());
    optimizer.step();
  });
}

TEST_P(Misuse, OptimizerTwiceOrTooLate) {
  expect("the model has one already", [](Model& model, ShardedOptimizer&) { model.optimizer(SgdOptions()); });
  EXPECT_THAT(
      [&] {
        on_ranks(2, [&](const World& world) {
          Model model(TwoLayers(), world, {.stage = GetParam()});
          model(input());
          model.optimizer(SgdOptions());
        });
      },
      ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("make it before")));
  on_ranks(2, [](const World& world) {
    Model model(TwoLayers(), world, {.stage = GetParam()});
    const Frozen frozen = model.freeze();
    EXPECT_THAT(message_of<InputError>([&] { model.optimizer(SgdOptions()); }), ::testing::HasSubstr("freeze()"));
  });
}

TEST_P(Misuse, StateInTheMiddleOfAStep) {
  expect("save_state() in the middle of a step", [](Model& model, ShardedOptimizer&) {
    const Accumulation part = model.accumulate(2);
    model.backward(model(input()).sum());
    model.save_state("/nowhere");
  });
}

TEST_P(Misuse, WeightsForSomeMicroBatches) {
  expect("all micro-batches of a step have a weight", [](Model& model, ShardedOptimizer&) {
    for (int micro = 0; micro < 2; ++micro) {
      const Accumulation part = model.accumulate(2);
      micro ? model.backward(model(input()).sum()) : model.backward(model(input()).sum(), 3);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, Misuse, ::testing::Values(0, 2, 3));

/// The error for a model with these options and settings on one rank.
std::string refusal_of(const OptimizerSettings& settings, const ShardOptions& options = {}, bool frozen = false) {
  try {
    on_ranks(1, [&](const World& world) {
      TwoLayers net;
      net->register_module("relu", torch::nn::ReLU());
      for (at::Tensor& parameter : net->parameters()) parameter.set_requires_grad(!frozen);
      Model model(net, world, options);
      model.optimizer(settings);
    });
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Misuse, OptimizerSettingsOutOfTheirBounds) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<OptimizerSettings, std::string>> cases{
      {AdamWOptions{.lr = -1}, "lr = -1: at least 0"},
      {AdamWOptions{.lr = none}, "lr = nan"},
      {LionOptions{.lr = infinity}, "lr = inf"},
      {AdamWOptions{.beta1 = 1}, "beta1 = 1: at least 0, below 1"},
      {AdamW8bitOptions{.beta2 = -0.1}, "beta2 = -0.1"},
      {AdamWOptions{.eps = 0}, "eps = 0: above 0"},
      {SgdOptions{.momentum = 1.5}, "momentum = 1.5"},
      {AdafactorOptions{.weight_decay = -1}, "weight_decay = -1"},
      {ProdigyOptions{.d0 = 0}, "d0 = 0"},
      {MuonOptions{.ns_steps = 0}, "ns_steps = 0: 1 to 100"},
      {MuonOptions{.lr_adamw = none}, "lr_adamw = nan"},
      {SgdOptions{.groups = {{.match = {"*.bias"}, .lr = -1}}}, "lr of a group = -1"},
      {SgdOptions{.groups = {{.lr = 1}}}, "a group without match"},
      {SgdOptions{.groups = {{.match = {"*"}, .optimizer = "adam"}}}, "optimizer = \"adam\": one of adamw, "}};
  for (const auto& [settings, message] : cases) EXPECT_THAT(refusal_of(settings), ::testing::HasSubstr(message));
  for (const double lr : {-1.0, none, infinity})
    EXPECT_THAT(refusal(3,
                        [&](Model& model, ShardedOptimizer& optimizer) {
                          model.backward(model(input()).sum());
                          optimizer.step(lr);
                        }),
                ::testing::HasSubstr("a learning rate is at least 0, and finite"));
}

TEST(Misuse, NothingToTrain) {
  EXPECT_THAT(refusal_of(SgdOptions(), {}, true), ::testing::HasSubstr("all parameters of the module are frozen"));
}

TEST(Misuse, PatternsOfNoParameters) {
  EXPECT_THAT(refusal_of(SgdOptions(), {.units = {"first", "relu"}}),
              ::testing::HasSubstr("units: \"relu\" matches no module with parameters"));
  EXPECT_THAT(refusal_of(SgdOptions(), {.units = {"third"}}),
              ::testing::HasSubstr("units: \"third\" matches no module"));
  EXPECT_EQ(refusal_of(SgdOptions(), {.units = {"first", "*"}}), "nothing was thrown");
}

TEST_P(Misuse, ModelGoneBeforeItsOptimizer) {
  on_ranks(2, [&](const World& world) {
    auto model = std::make_unique<Model>(TwoLayers(), world, ShardOptions{.stage = GetParam()});
    ShardedOptimizer optimizer = model->optimizer(AdamWOptions());
    const Accumulation whole = model->accumulate(2);
    model->backward((*model)(input()).sum());
    model.reset();
    for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
             [&] { optimizer.step(); }, [&] { optimizer.clip(1); }, [&] { (void)optimizer.lr(); },
             [&] { (void)optimizer.steps_taken(); }})
      EXPECT_THAT(message_of<InputError>(call), ::testing::HasSubstr("the optimizer's model is gone"));
    EXPECT_FALSE(whole.is_last());
  });
}

TEST_P(Misuse, StepsThatDiffer) {
  expect(
      "on process 1 has the learning rate 0.01, clip(0) and micro-batches without weights, on process 0 the "
      "learning rate 0.001, clip(0) and",
      [](Model& model, ShardedOptimizer& optimizer) {
        model.backward(model(input()).sum());
        optimizer.step(model.world().is_main() ? 1e-3 : 1e-2);
      });
  expect("the learning rate 0.0010000000474974513, clip(0) and", [](Model& model, ShardedOptimizer& optimizer) {
    model.backward(model(input()).sum());
    optimizer.step(model.world().is_main() ? 1e-3 : double(1e-3F));
  });
  expect("micro-batches with weights, on process 0", [](Model& model, ShardedOptimizer& optimizer) {
    const at::Tensor loss = model(input()).sum();
    model.world().is_main() ? model.backward(loss) : model.backward(loss, 3);
    optimizer.step();
  });
  expect("clip(2)", [](Model& model, ShardedOptimizer& optimizer) {
    if (!model.world().is_main()) optimizer.clip(2);
    model.backward(model(input()).sum());
    optimizer.step();
  });
}

TEST(Misuse, RawPointerAtRest) {
  on_ranks(2, [](const World& world) {
    Model model(TwoLayers(), world, {.stage = 3});
    model.optimizer(SgdOptions());
    EXPECT_THROW(model->first->weight.data_ptr(), c10::Error);
    model(input());
    EXPECT_NE(model->second->weight.data_ptr(), nullptr);
  });
}

TEST(Misuse, TensorsThatShareMemory) {
  TwoLayers net;
  net->second->weight.set_data(net->first->weight.detach().narrow(0, 0, 2));
  EXPECT_THAT([&] { on_ranks(1, [&](const World& world) { Model(net, world).optimizer(SgdOptions()); }); },
              ::testing::ThrowsMessage<InputError>(
                  ::testing::HasSubstr("share memory and are two tensors: register the same tensor under both names")));
}

TEST(Misuse, ModuleOnAnotherDevice) {
  struct ElsewhereImpl : torch::nn::Module {
    ElsewhereImpl() { register_parameter("weight", torch::empty({2}, torch::kMeta)); }
  };
  EXPECT_THAT(
      [&] {
        on_ranks(1, [&](const World& world) {
          ShardedModel(std::make_shared<ElsewhereImpl>(), world, {}).optimizer(SgdOptions());
        });
      },
      ::testing::ThrowsMessage<InputError>(::testing::HasSubstr(
          "parameter weight is on Meta and has no values: build the module inside zero::deferred()")));
}

TEST(Misuse, AnOperationOverMoreUnitsThanMayBeOpen) {
  const auto join = [](int open) {
    on_ranks(2, [&](const World& world) {
      Model model(TwoLayers(), world, {.stage = 3, .open_groups = open});
      model.optimizer(SgdOptions());
      torch::cat({model->first->weight, model->second->weight});
    });
  };
  EXPECT_NO_THROW(join(2));
  EXPECT_THAT([&] { join(1); }, ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("raise open_groups")));
}

at::Tensor branch(TwoLayersImpl& net, int rank) {
  const at::Tensor hidden = net.first(input());
  return rank == 0 ? net.second(hidden).sum() : hidden.sum();
}

// Parameters that one rank's branch skips count as zeros there: the gradient is the mean of both.
TEST(Misuse, RanksMayTakeOtherBranchesWhereWeightsAreWhole) {
  for (const int stage : {0, 1, 2}) {
    on_ranks(2, [&](const World& world) {
      static TwoLayers net;  // one for both, as values to begin with
      TwoLayers own, alone;
      {
        const torch::NoGradGuard no_grad;
        for (std::size_t p = 0; p < 4; ++p) {
          own->parameters()[p].copy_(net->parameters()[p]);
          alone->parameters()[p].copy_(net->parameters()[p]);
        }
      }
      Model model(own, world, {.stage = stage});
      ShardedOptimizer optimizer = model.optimizer(SgdOptions());
      for (int step = 0; step < 2; ++step) {
        model.backward(branch(*model.operator->(), (world.rank() + step) % 2));
        if (step == 0) {
          ((branch(*alone, 0) + branch(*alone, 1)) / 2).backward();
          model.for_each_gradient([&](const std::string& name, const at::Tensor& value) {
            EXPECT_TRUE(at::allclose(value, alone->named_parameters()[name].grad())) << name << " stage " << stage;
          });
        }
        optimizer.step();
      }
    });
  }
}

TEST(Misuse, RanksWithOtherBranchesAreRefusedWhereWeightsAreSharded) {
  EXPECT_THAT(
      refusal_of_any(3, [](Model& model,
                           ShardedOptimizer&) { model.backward(branch(*model.operator->(), model.world().rank())); }),
      ::testing::HasSubstr("mismatch of collectives"));
}

// A forward or a backward that ends with an exception on every rank leaves a model that trains on as if nothing
// had happened.
TEST(Misuse, ExceptionsInTheMiddle) {
  struct Throws : torch::autograd::Function<Throws> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 1; }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
      throw std::runtime_error("in the middle");
    }
  };
  const auto train = [](bool fails, int stage) {
    std::vector<at::Tensor> weights;
    on_ranks(2, [&](const World& world) {
      TwoLayers net;
      {
        const torch::NoGradGuard no_grad;
        for (at::Tensor& parameter : net->parameters()) parameter.fill_(0.3);
      }
      Model model(net, world, {.stage = stage});
      ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
      for (int step = 0; step < 3; ++step) {
        if (fails) {
          EXPECT_THROW(model->second(model->first(input()).index({"nothing like this"})), c10::Error);
          EXPECT_THROW(model.backward(model->second(Throws::apply(model->first(input()))).sum()), std::runtime_error);
        }
        model.backward(model(input()).sum());
        optimizer.step();
      }
      model.for_each_parameter([&](const std::string&, const at::Tensor& value) {
        if (world.is_main()) weights.push_back(value.clone());
      });
    });
    return weights;
  };
  for (const int stage : {0, 1, 2, 3}) {
    const auto want = train(false, stage), got = train(true, stage);
    ASSERT_EQ(want.size(), got.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(want[i], got[i])) << stage << ' ' << i;
  }
}

}  // namespace module_misuse_test
}  // namespace zero::testing
