// Which gradients a backward leaves where: in the model, in tensors outside it, and in parameter.grad().
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <mutex>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace module_backward_test {

namespace F = torch::nn::functional;
using ::testing::HasSubstr;
using Gradients = std::map<std::string, at::Tensor>;

struct LinesImpl : torch::nn::Module {
  LinesImpl() {
    first = register_module("first", torch::nn::Linear(4, 6));
    second = register_module("second", torch::nn::Linear(6, 4));
    to(torch::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(Lines);

/// The same values on every rank and in every test: ranks are threads that share torch's generator.
Lines make_lines(int seed) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  torch::manual_seed(seed);
  return Lines();
}

/// Rows of a batch of 7 that a process has.
at::Tensor rows_of(const World& world) {
  const at::Tensor all = torch::arange(28, torch::kDouble).sin().view({7, 4});
  return all.tensor_split(world.size())[std::size_t(world.rank())];
}

at::Tensor loss_of(const at::Tensor& y) { return (y.pow(2).sum(1) + y.sin().sum(1)).mean(); }

Gradients gradients_of(ShardedModel& model) {
  Gradients found;
  model.for_each_gradient([&](const std::string& name, const at::Tensor& value) { found[name] = value.clone(); });
  return found;
}

void expect_near(const Gradients& found, const torch::nn::Module& alone, const char* what) {
  for (const auto& parameter : alone.named_parameters())
    EXPECT_LT((found.at(parameter.key()) - parameter.value().grad()).abs().max().item<double>(), 1e-12)
        << what << ' ' << parameter.key();
}

/// Autograd gives its parameters gradients that are views of one memory.
struct PlacesImpl : torch::nn::Module {
  explicit PlacesImpl(bool two) : layer(4, 4) {
    register_module("layer", layer);
    place = register_parameter("place", torch::empty({5, 4}));
    if (two) kind = register_parameter("kind", torch::empty({5, 4}));
    to(torch::kDouble);
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters())
      parameter.copy_(torch::arange(parameter.numel()).cos().view(parameter.sizes()));
  }
  /// x and the result: [rows, 5, 4]
  at::Tensor forward(const at::Tensor& x) {
    return layer(x) + (kind.defined() ? place.unsqueeze(0) + kind.unsqueeze(0) : place.unsqueeze(0));
  }
  torch::nn::Linear layer;
  at::Tensor place, kind;
};
TORCH_MODULE(Places);

class ModuleBackward : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static int stage() { return std::get<0>(GetParam()); }
  static int ranks() { return std::get<1>(GetParam()); }
};

TEST_P(ModuleBackward, AWeightReachesTheModelsParametersAlone) {
  on_ranks(ranks(), [&](const World& world) {
    Lines alone = make_lines(3);
    const at::Tensor all = torch::arange(28, torch::kDouble).sin().view({7, 4});
    loss_of(alone->forward(all)).backward();

    const at::Tensor x = rows_of(world).clone().requires_grad_(), same = x.detach().clone().requires_grad_();
    loss_of(make_lines(3)->forward(same)).backward();
    Sharded<Lines> model(make_lines(3), world, {.stage = stage()});
    model.optimizer(SgdOptions());
    model.backward(loss_of(model->forward(x)), double(x.size(0)));
    EXPECT_TRUE(at::allclose(x.grad(), same.grad(), 1e-12, 1e-14)) << x.grad();
    expect_near(gradients_of(model), *alone, "gradient");
  });
}

TEST_P(ModuleBackward, ModelsThatAreChainedByHandAreWeightedOnce) {
  on_ranks(ranks(), [&](const World& world) {
    Lines alone_below = make_lines(4), alone_above = make_lines(5);
    const at::Tensor all = torch::arange(28, torch::kDouble).sin().view({7, 4});
    loss_of(alone_above->forward(alone_below->forward(all))).backward();

    Sharded<Lines> below(make_lines(4), world, {.stage = stage()}), above(make_lines(5), world, {.stage = stage()});
    below.optimizer(SgdOptions());
    above.optimizer(SgdOptions());
    const at::Tensor x = rows_of(world);
    const at::Tensor middle = below->forward(x), cut = middle.detach().requires_grad_();
    above.backward(loss_of(above->forward(cut)), double(x.size(0)));
    below.backward((middle * cut.grad()).sum(), double(x.size(0)));
    expect_near(gradients_of(above), *alone_above, "above");
    expect_near(gradients_of(below), *alone_below, "below");
  });
}

// The penalty of WGAN-GP (Gulrajani et al. 2017), by the gradient of the output for the input, and one on gradients of
// parameters.
at::Tensor penalized(LinesImpl& net, const at::Tensor& given) {
  const at::Tensor x = given.detach().requires_grad_(), y = net.forward(x);
  const at::Tensor for_input = torch::autograd::grad({y.sum()}, {x}, {}, {}, /*create_graph=*/true)[0];
  const at::Tensor for_weight = torch::autograd::grad({y.pow(2).sum()}, {net.first->weight}, {}, {}, true)[0];
  return loss_of(y) + (for_input.norm(2, 1) - 1).pow(2).mean() + 1e-3 * for_weight.pow(2).sum();
}

// The gradient at one place shares memory with the layer's, which is still in flight; the second step takes the place
// first. Gradients at two places share memory with each other.
TEST_P(ModuleBackward, AWeightScalesGradientsThatShareMemoryOnce) {
  for (const bool two : {false, true})
    on_ranks(ranks(), [&](const World& world) {
      const at::Tensor all = torch::arange(20 * world.size(), torch::kDouble).sin().view({world.size(), 5, 4});
      Places alone(two);
      alone->forward(all).pow(2).mean().backward();
      Sharded<Places> model(Places(two), world, {.stage = stage()});
      ShardedOptimizer optimizer = model.optimizer(SgdOptions{.lr = 0});
      for (int step = 0; step < 2; ++step) {
        model.backward(model->forward(all.narrow(0, world.rank(), 1)).pow(2).mean(), 5);
        expect_near(gradients_of(model), *alone, two ? "two places" : step ? "one place again" : "one place");
        optimizer.step();
      }
    });
}

TEST_P(ModuleBackward, GradientsOfGradientsAreThoseOfLibTorch) {
  on_ranks(ranks(), [&](const World& world) {
    Lines alone = make_lines(6);
    const at::Tensor x = torch::arange(12, torch::kDouble).cos().view({3, 4});
    penalized(*alone, x).backward();
    Sharded<Lines> model(make_lines(6), world, {.stage = stage()});
    model.optimizer(SgdOptions());
    model.backward(penalized(*model.operator->(), x));
    expect_near(gradients_of(model), *alone, "gradient");
  });
}

TEST_P(ModuleBackward, ALossOfNoRowsIsZeroAfterwards) {
  on_ranks(ranks(), [&](const World& world) {
    Sharded<Lines> model(make_lines(7), world, {.stage = stage()});
    ShardedOptimizer optimizer = model.optimizer(SgdOptions());
    const bool has_rows = world.is_main();
    const at::Tensor x = torch::ones({has_rows ? 2 : 0, 4}, torch::kDouble);
    const at::Tensor loss = loss_of(model->forward(x));
    EXPECT_EQ(loss.isnan().item<bool>(), !has_rows);
    const double before = loss.item<double>();
    model.backward(loss, double(x.size(0)));
    EXPECT_EQ(loss.item<double>(), has_rows ? before : 0);
    EXPECT_TRUE(optimizer.step().taken);
  });
}

// A process of the weight 0 may have computed anything.
TEST_P(ModuleBackward, GradientsOfTheWeightZeroAreNotLookedAt) {
  if (ranks() == 1) GTEST_SKIP() << "all weights would be 0";
  on_ranks(ranks(), [&](const World& world) {
    Lines alone = make_lines(8);
    const at::Tensor x = torch::ones({2, 4}, torch::kDouble);
    loss_of(alone->forward(x)).backward();
    Sharded<Lines> model(make_lines(8), world, {.stage = stage()});
    model.optimizer(SgdOptions());
    const at::Tensor loss = loss_of(model->forward(world.is_main() ? x : x * std::nan("")));
    model.backward(loss, world.is_main() ? 2 : 0);
    expect_near(gradients_of(model), *alone, "gradient");
  });
}

TEST_P(ModuleBackward, ParameterGradNamesThePlaceOfGradients) {
  on_ranks(ranks(), [&](const World& world) {
    Sharded<Lines> model(make_lines(9), world, {.stage = stage()});
    ShardedOptimizer optimizer = model.optimizer(SgdOptions());
    const at::Tensor x = rows_of(world);
    const std::vector<at::Tensor> parameters = model->parameters();
    torch::optim::SGD another(parameters, 0.1);
    model.backward(loss_of(model->forward(x)));
    const auto refusal =
        ::testing::AllOf(HasSubstr("parameter.grad() of a sharded model"), HasSubstr("optimizer.clip()"),
                         HasSubstr("model.optimizer(...) replaces torch::optim"));
    EXPECT_EQ(parameters[0].grad().sizes(), parameters[0].sizes());
    EXPECT_THAT(message_of<InputError>([&] { parameters[0].grad().norm(); }), refusal);
    EXPECT_THAT(message_of<InputError>([&] { torch::nn::utils::clip_grad_norm_(parameters, 1.0); }), refusal);
    EXPECT_THAT(message_of<InputError>([&] { another.step(); }), refusal);
    optimizer.step();
    EXPECT_THAT(message_of<InputError>([&] { loss_of(model->forward(x)).backward(); }),
                HasSubstr("call model.backward(loss), not loss.backward()"));
    model->zero_grad();
    for (int step = 0; step < 2; ++step) {
      model.backward(loss_of(model->forward(x)));
      EXPECT_TRUE(optimizer.step().taken);
    }
  });
}

TEST(ModuleBackward, AGradientThatIsKeptOutlivesTheModel) {
  at::Tensor kept;
  on_ranks(1, [&](const World& world) {
    Lines net = make_lines(9);
    Sharded<Lines> model(net, world);
    model.optimizer(SgdOptions());
    model.backward(loss_of(model->forward(rows_of(world))));
    kept = net->first->weight.grad();
  });
  EXPECT_THAT(message_of<InputError>([&] { kept.sum(); }), HasSubstr("holds no gradient"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ModuleBackward,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Values(1, 2, 3)));

// at::autocast casts what operations see, parameters too, whatever the stage.
TEST(ModuleBackward, AutocastGivesTheSameNumbersAtEveryStage) {
  const auto train = [](int stage) {
    Gradients found;
    on_ranks(2, [&](const World& world) {
      Lines net = make_lines(10);
      net->to(torch::kFloat);
      Sharded<Lines> model(net, world, {.stage = stage});
      model.optimizer(SgdOptions());
      at::autocast::set_autocast_enabled(at::kCPU, true);
      at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
      const at::Tensor y = model->forward(rows_of(world).to(torch::kFloat));
      at::autocast::clear_cache();
      at::autocast::set_autocast_enabled(at::kCPU, false);
      EXPECT_EQ(y.scalar_type(), at::kBFloat16);
      model.backward(loss_of(y.to(torch::kFloat)));
      const Gradients own = gradients_of(model);
      if (world.is_main()) found = own;
    });
    return found;
  };
  const Gradients want = train(0);
  for (const int stage : {1, 2, 3})
    for (const auto& [name, value] : train(stage)) EXPECT_TRUE(at::equal(value, want.at(name))) << name << stage;
}

}  // namespace module_backward_test
}  // namespace zero::testing
