// Values that a program reads from a sharded model and its optimizer, and gives to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <map>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/sim/modules/odd_net.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace module_values_test {

using ::testing::HasSubstr;

/// The same values on every rank: ranks are threads with one generator.
template <typename Net>
Net filled(Net net) {
  const torch::NoGradGuard no_grad;
  double next = 0;
  for (at::Tensor& parameter : net->parameters())
    parameter.copy_(((torch::arange(parameter.numel()) + ++next).sin() / 4).view(parameter.sizes()));
  return net;
}

NamedTensors values_of(ShardedModel& model) {
  NamedTensors values;
  model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { values[name] = value.clone(); });
  return values;
}

void expect_same(const NamedTensors& a, const NamedTensors& b, double tolerance = 0) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    ASSERT_EQ(value.sizes(), b.at(name).sizes()) << name;
    if (value.numel() > 0) {
      EXPECT_LE((value - b.at(name)).abs().max().item<double>(), tolerance) << name;
    }
  }
}

void train(Sharded<OddNet>& model, int begin, int end) {
  const World& world = model.world();
  for (int step = begin; step < end; ++step) {
    const int from = 6 * world.rank() / world.size(), to = 6 * (world.rank() + 1) / world.size();
    model.backward(odd_loss(*model.operator->(), odd_batch(step, 6, from, to - from), step % 2), to - from);
    model.optimizer().step();
  }
}

// This is an evaluation with averaged weights swapped in: training continues unaffected.
TEST(LoadTensors, GivesValuesAndLeavesTheOptimizer) {
  for (const auto& [stage, ranks, degree] :
       std::vector<std::array<int, 3>>{{0, 1, 0}, {0, 2, 0}, {1, 3, 0}, {3, 3, 0}, {2, 4, 2}})
    for (const bool strict : {true, false}) {
      NamedTensors undisturbed, disturbed;
      for (const bool swaps : {false, true})
        on_ranks(ranks, [&](const World& world) {
          Sharded<OddNet> model(filled(OddNet()), world, {.stage = stage, .shard_degree = degree});
          model.optimizer(AdamWOptions{.lr = 1e-2});
          train(model, 0, 2);
          if (swaps) {
            const NamedTensors own = values_of(model);
            NamedTensors average;
            for (const auto& [name, value] : own)
              if (strict || name != "frozen.weight") average[name] = value / 2;
            average["seen"] = torch::full({2}, 5, torch::kDouble);
            model.load(average, strict);
            EXPECT_TRUE(model->seen.equal(average["seen"]));
            const NamedTensors got = values_of(model);
            for (const auto& [name, value] : own) {
              const bool stays = !strict && name == "frozen.weight";
              EXPECT_TRUE(at::allclose(got.at(name), stays ? value : value / 2, 0, 1e-15)) << name;
            }
            EXPECT_TRUE(at::allclose(model->head->bias, own.at("head.bias") / 2));
            model.load(own, /*strict=*/false);
          }
          train(model, 2, 4);
          if (NamedTensors values = values_of(model); world.is_main()) (swaps ? disturbed : undisturbed) = values;
        });
      expect_same(undisturbed, disturbed, 1e-15);
    }
}

TEST(LoadTensors, KeepsMastersOfBf16Weights) {
  for (const Masters masters : {Masters::fp32, Masters::split})
    on_ranks(2, [&](const World& world) {
      Sharded<torch::nn::Linear> model(filled(torch::nn::Linear(5, 3)), world,
                                       {.stage = 3, .precision = bf16, .master_dtype = masters});
      model.optimizer(AdamWOptions{.lr = 1e-2});
      model.backward(model->forward(torch::ones({2, 5}, torch::kBFloat16)).sum());
      model.optimizer().step();
      const NamedTensors own = values_of(model), zeros{{"weight", torch::zeros({3, 5})}, {"bias", torch::zeros({3})}};
      EXPECT_EQ(own.at("weight").scalar_type(), at::kFloat);
      model.load(zeros);
      EXPECT_EQ(model->weight.abs().sum().item<float>(), 0);
      model.load(own);
      expect_same(values_of(model), own);
    });
}

// Before the model is divided, a target net without an optimizer, and tensors of other floating types.
TEST(LoadTensors, ReachesModelsWithoutAnOptimizer) {
  on_ranks(2, [&](const World& world) {
    Sharded<torch::nn::Linear> net(filled(torch::nn::Linear(4, 4)), world), target(torch::nn::Linear(4, 4), world),
        early(torch::nn::Linear(4, 4), world);
    net.optimizer(AdamWOptions());
    const NamedTensors values = values_of(net);
    early.load(values);  // not divided yet
    target->forward(torch::ones({1, 4}));
    target.load(values);
    expect_same(values_of(target), values);
    expect_same(values_of(early), values);
    target.load({{"weight", torch::ones({4, 4}, torch::kDouble)}}, /*strict=*/false);
    EXPECT_EQ(target->weight.sum().item<float>(), 16);
  });
}

TEST(LoadTensors, RefusesWhatIsNotTheModels) {
  for (const bool divided : {false, true})
    on_ranks(2, [&](const World& world) {
      Sharded<torch::nn::Linear> model(filled(torch::nn::Linear(2, 2)), world);
      if (divided) model.optimizer(SgdOptions());
      const at::Tensor weight = torch::ones({2, 2}), bias = torch::ones({2});
      const auto refusal = [&](const NamedTensors& tensors, bool strict = true) {
        return message_of<InputError>([&] { model.load(tensors, strict); });
      };
      EXPECT_THAT(refusal({{"weight", weight}}), HasSubstr("bias of the module is not among them"));
      EXPECT_THAT(refusal({{"weight", weight}, {"bias", bias}, {"wait", bias}}), HasSubstr("the module has no wait"));
      EXPECT_THAT(refusal({{"wait", bias}}, false), HasSubstr("the module has no wait"));
      EXPECT_THAT(refusal({{"weight", bias}, {"bias", bias}}), HasSubstr("weight has the shape [2], and [2, 2]"));
      EXPECT_THAT(refusal({{"weight", weight.to(torch::kLong)}, {"bias", bias}}), HasSubstr("weight is Long"));
      EXPECT_THAT(refusal({{"weight", weight}, {"bias", bias * (world.rank() + 1)}}),
                  HasSubstr("process 1 passes other tensors than process 0"));
      EXPECT_FALSE(model->weight.equal(weight));
    });
}

TEST(LoadTensors, RefusesAModuleWithoutParameters) {
  on_ranks(2, [](const World& world) {
    Sharded<torch::nn::Sequential> model(torch::nn::Sequential(torch::nn::ReLU()), world);
    EXPECT_THAT(message_of<InputError>([&] { model.load(NamedTensors()); }), HasSubstr("has no parameters to shard"));
  });
}

TEST(Freeze, LetsAnotherModelsGradientsPass) {
  const at::Tensor x = torch::linspace(-1, 1, 8).view({4, 2});
  for (const int stage : {0, 3})
    on_ranks(2, [&](const World& world) {
      auto g = filled(torch::nn::Linear(2, 3)), c = filled(torch::nn::Linear(3, 1));
      Sharded<torch::nn::Linear> generator(filled(torch::nn::Linear(2, 3)), world, {.stage = stage}),
          critic(filled(torch::nn::Linear(3, 1)), world, {.stage = stage});
      critic.unwrap()->bias.set_requires_grad(false);  // and stays so
      generator.optimizer(SgdOptions()), critic.optimizer(SgdOptions());
      const auto loss = [&] { return critic->forward(torch::tanh(generator->forward(x))).pow(2).sum(); };
      {
        const Frozen frozen = critic.freeze();
        const Frozen again = critic.freeze();
        EXPECT_FALSE(critic->weight.requires_grad());
        generator.backward(loss());
      }
      EXPECT_TRUE(critic->weight.requires_grad());
      EXPECT_FALSE(critic->bias.requires_grad());
      c->forward(torch::tanh(g->forward(x))).pow(2).sum().backward();
      generator.for_each_gradient([&](const std::string& name, const at::Tensor& value) {
        EXPECT_TRUE(at::allclose(value, g->named_parameters()[name].grad())) << name;
      });
      generator.optimizer().step();
      critic.backward(critic->forward(torch::ones({1, 3})).sum());
      critic.optimizer().step();
      const Frozen frozen = critic.freeze();
      EXPECT_THAT(message_of<InputError>([&] { critic.backward(loss()); }), HasSubstr("auto frozen = model.freeze()"));
    });
}

/// A layer in training by LibTorch alone, of which `steps` are done.
struct Alone {
  torch::nn::Linear net = filled(torch::nn::Linear(5, 3));
  torch::optim::AdamW optimizer{net->parameters(), torch::optim::AdamWOptions(1e-2).betas({0.9, 0.95}).weight_decay(0)};

  void train(int steps) {
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      net->forward(torch::ones({2, 5})).pow(2).sum().backward();
      optimizer.step();
    }
  }
  NamedTensors states(const at::Tensor& parameter) {
    const auto& state =
        static_cast<torch::optim::AdamWParamState&>(*optimizer.state().at(parameter.unsafeGetTensorImpl()));
    return {{"exp_avg", state.exp_avg()}, {"exp_avg_sq", state.exp_avg_sq()}};
  }
};

void train(Sharded<torch::nn::Linear>& model, int steps) {
  for (int step = 0; step < steps; ++step) {
    model.backward(model->forward(torch::ones({2, 5})).pow(2).sum());
    model.optimizer().step();
  }
}

// A program that used LibTorch's optimizer continues here with its states.
TEST(OptimizerStates, AreThoseOfLibTorchAndGoOnFromThem) {
  Alone alone;
  alone.train(3);
  const NamedTensors weights{{"weight", alone.net->weight.detach().clone()},
                             {"bias", alone.net->bias.detach().clone()}};
  const NamedTensors of_weight = alone.states(alone.net->weight), of_bias = alone.states(alone.net->bias);
  const NamedTensors first{{"exp_avg", of_weight.at("exp_avg").clone()},
                           {"exp_avg_sq", of_weight.at("exp_avg_sq").clone()}},
      second{{"exp_avg", of_bias.at("exp_avg").clone()}, {"exp_avg_sq", of_bias.at("exp_avg_sq").clone()}};
  alone.train(3);
  for (const auto& [stage, ranks, degree] :
       std::vector<std::array<int, 3>>{{0, 1, 0}, {0, 2, 0}, {1, 3, 0}, {3, 3, 0}, {2, 4, 2}})
    on_ranks(ranks, [&](const World& world) {
      const ShardOptions options{.stage = stage, .shard_degree = degree};
      const AdamWOptions adam{.lr = 1e-2, .weight_decay = 0};
      Sharded<torch::nn::Linear> model(filled(torch::nn::Linear(5, 3)), world, options),
          begins(torch::nn::Linear(5, 3), world, options);
      auto optimizer = model.optimizer(adam), then = begins.optimizer(adam);
      train(model, 3);
      expect_same(optimizer.states("weight"), first, 1e-6);
      expect_same(optimizer.states("bias"), second, 1e-6);
      begins.load(weights);
      then.set_states("weight", first);
      then.set_states("bias", {{"exp_avg", second.at("exp_avg").to(torch::kDouble)}});
      then.set_states("bias", {{"exp_avg_sq", second.at("exp_avg_sq")}});
      then.set_steps_taken(3);
      expect_same(then.states("weight"), first);
      expect_same(then.states("bias"), second);
      EXPECT_EQ(then.steps_taken(), 3);
      train(begins, 3);
      EXPECT_TRUE(at::allclose(begins->weight, alone.net->weight, 0, 1e-6)) << stage << ranks;
      EXPECT_TRUE(at::allclose(begins->bias, alone.net->bias, 0, 1e-6));
    });
}

TEST(OptimizerStates, HaveTheNamesOfEveryOptimizer) {
  const std::vector<std::pair<OptimizerSettings, std::vector<std::string>>> kept{
      {AdamWOptions(), {"exp_avg", "exp_avg_sq"}},
      {AdamW8bitOptions(), {"exp_avg_codes", "exp_avg_scales", "exp_avg_sq_codes", "exp_avg_sq_scales"}},
      {SgdOptions(), {"momentum_buffer"}},
      {LionOptions(), {"exp_avg"}},
      {AdafactorOptions(), {"col_var", "row_var"}},
      {ProdigyOptions(), {"exp_avg", "exp_avg_sq", "p0", "s"}}};
  for (const auto& [settings, names] : kept)
    on_ranks(2, [&](const World& world) {
      Sharded<torch::nn::Linear> model(filled(torch::nn::Linear(5, 820)), world,
                                       {.stage = 3});  // 4100: coded in 8 bits
      auto optimizer = model.optimizer(settings);
      train(model, 2);
      const NamedTensors states = optimizer.states("weight");
      std::vector<std::string> found;
      for (const auto& [name, value] : states) found.push_back(name);
      EXPECT_EQ(found, names);
      NamedTensors other;
      for (const auto& [name, value] : states) other[name] = torch::ones(value.sizes(), value.options());
      optimizer.set_states("weight", other);
      expect_same(optimizer.states("weight"), other);
      optimizer.set_states("weight", states);
      expect_same(optimizer.states("weight"), states);
    });
}

TEST(OptimizerStates, CoverSharedAndFrozenParametersAndGlobalNumbers) {
  on_ranks(2, [&](const World& world) {
    Sharded<OddNet> model(filled(OddNet()), world, {.stage = 3, .state_dtype = fp32});
    auto optimizer = model.optimizer(ProdigyOptions{.weight_decay = 0});
    train(model, 0, 2);
    EXPECT_EQ(optimizer.states("temperature").at("exp_avg").dim(), 0);
    NamedTensors all = optimizer.states("");
    EXPECT_GT(all.at("d").item<double>(), 0);
    optimizer.set_states("", {{"d", torch::full({1}, 0.5, torch::kDouble)}});
    EXPECT_EQ(optimizer.states("").at("d").item<double>(), 0.5);
    const auto refusal = [&](const std::string& parameter, const NamedTensors& states) {
      return message_of<InputError>([&] { optimizer.set_states(parameter, states); });
    };
    EXPECT_THAT(message_of<InputError>([&] { (void)optimizer.states("frozen.weight"); }), HasSubstr("it is frozen"));
    EXPECT_THAT(message_of<InputError>([&] { (void)optimizer.states("heat"); }), HasSubstr("no parameter heat"));
    EXPECT_THAT(refusal("head.bias", {{"master", torch::ones({3})}}), HasSubstr("keeps no master of head.bias"));
    EXPECT_THAT(refusal("head.bias", {{"exp_avg", torch::ones({2})}}), HasSubstr("has 2 elements, and 3"));
    EXPECT_THAT(refusal("", {{"exp_avg", torch::ones({2})}}), HasSubstr("keeps no exp_avg"));
  });
}

// Each process writes its own part.
TEST(OptimizerStates, ThatDifferBetweenProcessesAreRefused) {
  on_ranks(2, [](const World& world) {
    Sharded<torch::nn::Linear> model(filled(torch::nn::Linear(5, 3)), world);
    auto optimizer = model.optimizer(AdamWOptions());
    const auto refusal = [&](const std::string& parameter, const NamedTensors& states) {
      return message_of<InputError>([&] { optimizer.set_states(parameter, states); });
    };
    const auto others = HasSubstr("set_states(): process 1 passes other tensors than process 0");
    const bool main = world.is_main();
    EXPECT_THAT(refusal("weight", {{"exp_avg", torch::full({3, 5}, main ? 1.0 : 2.0)}}), others);
    EXPECT_THAT(refusal("weight", {{main ? "exp_avg" : "exp_avg_sq", torch::ones({3, 5})}}), others);
    EXPECT_EQ(optimizer.states("weight").at("exp_avg").abs().sum().item<float>(), 0);
    EXPECT_THAT(message_of<InputError>([&] { optimizer.set_steps_taken(main ? 2 : 3); }),
                HasSubstr("set_steps_taken(): process 1 gives 3 and process 0 gives 2"));
    EXPECT_THAT(message_of<InputError>([&] { optimizer.set_steps_taken(main ? 2 : -1); }),
                HasSubstr("process 1 gives -1"));
    EXPECT_THAT(message_of<InputError>([&] { optimizer.set_steps_taken(-1); }), HasSubstr("set_steps_taken(-1)"));
    EXPECT_EQ(optimizer.steps_taken(), 0);
  });
}

TEST(SkippedSteps, CauseOneWarningForThoseInARow) {
  ::testing::internal::CaptureStderr();
  on_ranks(2, [&](const World& world) {
    Sharded<torch::nn::Linear> model(filled(torch::nn::Linear(5, 3)), world);
    auto optimizer = model.optimizer(SgdOptions());
    const auto step = [&](double factor) {
      model.backward(model->forward(torch::ones({2, 5})).sum() * factor);
      return optimizer.step().taken;
    };
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(step(1));
    EXPECT_FALSE(step(none));
    EXPECT_FALSE(step(none));
    EXPECT_TRUE(step(1));
    EXPECT_FALSE(step(none));
  });
  const std::string told = ::testing::internal::GetCapturedStderr();
  const std::string first = "optimizer.step() updates nothing after step 1: the norm of the gradient is",
                    second = "optimizer.step() updates nothing after step 2";
  EXPECT_THAT(told, HasSubstr("warning: " + first));
  EXPECT_THAT(told, HasSubstr(second));
  EXPECT_EQ(told.find(first), told.rfind(first));
  EXPECT_EQ(told.find("updates nothing", told.find(second) + second.size()), std::string::npos);
}

}  // namespace module_values_test
}  // namespace zero::testing
