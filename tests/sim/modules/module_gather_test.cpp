// Losses over the rows of all processes: what they train is what one process trains with the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <mutex>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"
#include "zero/library/include/zero/batch_rows.h"
#include "zero/library/include/zero/nn/sync_batch_norm.h"

namespace zero::testing {
namespace module_gather_test {

namespace F = torch::nn::functional;

constexpr int rows = 7;

struct TwoTowersImpl : torch::nn::Module {
  TwoTowersImpl() {
    texts = register_module("texts", torch::nn::Linear(4, 3));
    pictures = register_module("pictures", torch::nn::Linear(5, 3));
    temperature = register_parameter("temperature", torch::full({}, 0.7));
    to(torch::kDouble);
  }
  /// Unit vectors of both.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& text, const at::Tensor& picture) {
    return {F::normalize(texts(text)), F::normalize(pictures(picture))};
  }
  torch::nn::Linear texts{nullptr}, pictures{nullptr};
  at::Tensor temperature;
};
TORCH_MODULE(TwoTowers);

TwoTowers make_towers() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  torch::manual_seed(11);
  return TwoTowers();
}

at::Tensor texts() { return torch::arange(rows * 4, torch::kDouble).sin().view({rows, 4}); }
at::Tensor pictures() { return torch::arange(rows * 5, torch::kDouble).cos().view({rows, 5}); }

/// The rows from `begin` on against all others (Radford et al. 2021), the mean over them.
at::Tensor contrast(const at::Tensor& own_texts, const at::Tensor& own_pictures, const at::Tensor& all_texts,
                    const at::Tensor& all_pictures, std::int64_t begin, const at::Tensor& temperature) {
  const at::Tensor truth = torch::arange(begin, begin + own_texts.size(0), torch::kLong);
  return (F::cross_entropy(own_texts.mm(all_pictures.t()) / temperature, truth) +
          F::cross_entropy(own_pictures.mm(all_texts.t()) / temperature, truth)) /
         2;
}

using Gradients = std::map<std::string, at::Tensor>;

Gradients reference() {
  TwoTowers net = make_towers();
  const auto [t, p] = net->forward(texts(), pictures());
  contrast(t, p, t, p, 0, net->temperature).backward();
  Gradients found;
  for (const auto& parameter : net->named_parameters()) found[parameter.key()] = parameter.value().grad().clone();
  return found;
}

enum class Loss { of_all_rows, of_all_rows_with_weights, of_own_rows };

Gradients sharded(int stage, int ranks, Loss kind) {
  Gradients found;
  on_ranks(ranks, [&](const World& world) {
    Sharded<TwoTowers> model(make_towers(), world, {.stage = stage});
    model.optimizer(SgdOptions());
    const RowRange own = rows_of_process(rows, world.rank(), world.size());
    const auto [t, p] =
        model->forward(texts().narrow(0, own.begin, own.count), pictures().narrow(0, own.begin, own.count));
    const at::Tensor all_t = world.gather(t), all_p = world.gather(p);
    EXPECT_EQ(all_t.size(0), rows);
    const at::Tensor& temperature = model->temperature;
    if (kind == Loss::of_own_rows)
      model.backward(contrast(t, p, all_t, all_p, own.begin, temperature), double(own.count));
    else if (kind == Loss::of_all_rows)
      model.backward(contrast(all_t, all_p, all_t, all_p, 0, temperature));
    else
      model.backward(contrast(all_t, all_p, all_t, all_p, 0, temperature), double(own.count));
    Gradients mine;
    model.for_each_gradient([&](const std::string& name, const at::Tensor& value) { mine[name] = value.clone(); });
    if (world.is_main()) found = mine;
  });
  return found;
}

class ModuleGather : public ::testing::TestWithParam<std::tuple<int, int, Loss>> {};

TEST_P(ModuleGather, TrainsAsOneProcessWithTheWholeBatch) {
  const auto [stage, ranks, kind] = GetParam();
  const Gradients want = reference(), got = sharded(stage, ranks, kind);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, value] : want)
    EXPECT_LT((got.at(name) - value).abs().max().item<double>(), 1e-12) << name << ' ' << got.at(name) << value;
}

// 9 ranks have 7 rows.
INSTANTIATE_TEST_SUITE_P(Layouts, ModuleGather,
                         ::testing::Combine(::testing::Values(0, 2, 3), ::testing::Values(1, 2, 3, 9),
                                            ::testing::Values(Loss::of_all_rows, Loss::of_all_rows_with_weights,
                                                              Loss::of_own_rows)));

// Each process's rows get the gradient of all processes' losses.
TEST(Gather, HasTheGradientOfAllLosses) {
  on_ranks(3, [](const World& world) {
    const at::Tensor own = torch::full({world.rank() + 1, 2}, 1.0 + world.rank(), torch::kDouble).requires_grad_();
    const at::Tensor all = world.gather(own);
    ASSERT_EQ(all.size(0), 6);
    (all.pow(2).sum() * (world.rank() + 1)).backward();  // 1 + 2 + 3 times
    EXPECT_TRUE(at::allclose(own.grad(), own.detach() * 2 * 6));
    const at::Tensor number = torch::full({}, double(world.rank()), torch::kDouble).requires_grad_();
    world.gather(number).sum().backward();
    EXPECT_EQ(number.grad().item<double>(), 3);
  });
}

TEST(Gather, MayBeDifferentiatedTwice) {
  on_ranks(2, [](const World& world) {
    const at::Tensor own = torch::full({1}, 2.0 + world.rank(), torch::kDouble).requires_grad_();
    const auto total = [&] { return world.gather(own).pow(3).sum() / world.size(); };  // on all processes
    const at::Tensor first = torch::autograd::grad({total()}, {own}, {}, {}, /*create_graph=*/true)[0];
    EXPECT_TRUE(at::allclose(first, 3 * own.detach().pow(2)));
    first.pow(2).sum().backward();  // each process's own part of sum over processes of 9 x^4
    EXPECT_TRUE(at::allclose(own.grad(), 36 * own.detach().pow(3)));
  });
}

// It would be trained as a constant.
TEST(Gather, OtherCallsOfTheWorldHaveNoGradientAndSaySo) {
  on_ranks(2, [](const World& world) {
    const at::Tensor own = torch::ones({2}, torch::kDouble).requires_grad_();
    const std::vector<std::pair<std::string, std::function<at::Tensor(const at::Tensor&)>>> calls{
        {"world.sum()", [&](const at::Tensor& x) { return world.sum(x); }},
        {"world.mean()", [&](const at::Tensor& x) { return world.mean(x); }},
        {"world.broadcast()", [&](const at::Tensor& x) { return world.broadcast(x); }},
        {"world.gather_for_metrics()", [&](const at::Tensor& x) { return world.gather_for_metrics(x); }}};
    for (const auto& [name, call] : calls) {
      const at::Tensor value = call(own);
      EXPECT_EQ(value[0].item<double>(), name == "world.sum()" ? 2 : 1) << name;
      EXPECT_THAT(message_of<InputError>([&] { (value.sum() + own.sum()).backward(); }),
                  ::testing::AllOf(::testing::HasSubstr("backward through " + name),
                                   ::testing::HasSubstr("world.gather() has a gradient")));
      (call(own.detach()).sum() * own.sum()).backward();
      const torch::NoGradGuard no_grad;
      EXPECT_FALSE(call(own).requires_grad()) << name;
    }
  });
}

// Statistics of all rows tie the losses of processes together, each of which has a weight of its own.
TEST(Gather, SyncBatchNormOfWeightedLossesIsThatOfTheWholeBatch) {
  const auto loss_of = [](const at::Tensor& y) { return (y.pow(3).sum(1) + y.sin().sum(1)).mean(); };
  torch::nn::Linear alone(4, 3);
  alone->to(torch::kDouble);
  torch::nn::BatchNorm1d norm(3);
  norm->to(torch::kDouble);
  loss_of(norm->forward(alone->forward(texts()))).backward();
  for (const int stage : {0, 3})
    on_ranks(3, [&](const World& world) {
      struct NetImpl : torch::nn::Module {
        explicit NetImpl(const World& world) : linear(4, 3), norm(3, world) {
          register_module("linear", linear);
          register_module("norm", norm);
          to(torch::kDouble);
        }
        torch::nn::Linear linear;
        nn::SyncBatchNorm1d norm;
      };
      const auto net = std::make_shared<NetImpl>(world);
      {
        const torch::NoGradGuard no_grad;
        net->linear->weight.copy_(alone->weight);
        net->linear->bias.copy_(alone->bias);
      }
      Sharded<torch::nn::ModuleHolder<NetImpl>> model(net, world, {.stage = stage});
      model.optimizer(SgdOptions());
      const RowRange own = rows_of_process(rows, world.rank(), world.size());
      const at::Tensor x = texts().narrow(0, own.begin, own.count).requires_grad_();
      model.backward(loss_of(model->norm(model->linear(x))), double(own.count));
      model.for_each_gradient([&](const std::string& name, const at::Tensor& value) {
        const at::Tensor want = name == "linear.weight" ? alone->weight.grad()
                                : name == "linear.bias" ? alone->bias.grad()
                                : name == "norm.weight" ? norm->weight.grad()
                                                        : norm->bias.grad();
        EXPECT_LT((value - want).abs().max().item<double>(), 1e-12) << name;
      });
    });
}

}  // namespace module_gather_test
}  // namespace zero::testing
