// If processes shard differently from rank 0, the error names the difference before anything is sharded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace module_agreement_test {

using Model = Sharded<torch::nn::Linear>;

TEST(ModuleAgreement, IsOnSettings) {
  const auto refused = [](const std::function<void(const World&)>& misuse) {
    try {
      on_ranks(2, misuse);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(refused([](const World& world) {
                Model model(torch::nn::Linear(4, 2), world, {.stage = 2});
                world.is_main() ? model.optimizer(AdamWOptions()) : model.optimizer(SgdOptions());
              }),
              ::testing::AllOf(::testing::HasSubstr("sharded otherwise on process 1"), ::testing::HasSubstr("sgd")));
  EXPECT_THAT(refused([](const World& world) {
                Model model(torch::nn::Linear(4, 2), world, {.stage = 2});
                model.optimizer(AdamWOptions{.lr = world.is_main() ? 1e-3 : 2e-3});
              }),
              ::testing::HasSubstr("sharded otherwise on process 1 (lr 0.002"));
  EXPECT_THAT(refused([](const World& world) {
                Model model(torch::nn::Linear(4, 2), world, {.seed = world.rank()});
                model.optimizer(AdamWOptions());
              }),
              ::testing::HasSubstr("sharded otherwise on process 1 (seed 1) than on process 0 (seed 0)"));
  EXPECT_THAT(refused([](const World& world) {
                Model model(torch::nn::Linear(4, 2), world, {.stage = world.is_main() ? 2 : 3});
                model(torch::ones({3, 4}));
              }),
              ::testing::HasSubstr("stage 3"));
}

TEST(ModuleAgreement, IsOnModules) {
  EXPECT_THAT(
      [] {
        on_ranks(3, [](const World& world) {
          Sharded<torch::nn::Linear> model(torch::nn::Linear(3, world.rank() == 2 ? 5 : 4), world);
          model.optimizer(SgdOptions());
        });
      },
      ::testing::ThrowsMessage<InputError>(::testing::AllOf(
          ::testing::HasSubstr("the processes have different modules: where rank 0 has parameter weight [4, 3]"),
          ::testing::HasSubstr("rank 2 has parameter weight [5, 3]"))));
}

// If one process refuses something, all do: none waits for it.
TEST(ModuleAgreement, AnErrorOfOneProcessIsThrownOnAll) {
  const auto expect = [](const std::string& message, const ShardOptions& options,
                         const std::function<void(torch::nn::Linear & net)>& misuse) {
    on_ranks(2, [&](const World& world) {
      torch::nn::Linear net(4, 2);
      if (!world.is_main()) misuse(net);
      Model model(net, world, options);
      EXPECT_THAT(message_of<InputError>([&] { model.optimizer(AdamWOptions()); }), ::testing::HasSubstr(message))
          << "rank " << world.rank();
    });
  };
  expect("sharded otherwise on process 1 (parameters Double) than on process 0 (parameters Float)",
         {.state_dtype = bf16}, [](torch::nn::Linear& net) { net->to(torch::kDouble); });
  expect("sharded otherwise on process 1 (parameters Half) than on process 0 (parameters Float)", {},
         [](torch::nn::Linear& net) { net->to(torch::kHalf); });
  expect("rank 1: parameter bias is of type Double", {},
         [](torch::nn::Linear& net) { net->bias.set_data(net->bias.to(torch::kDouble)); });
  expect("rank 1: model.optimizer(...): all parameters of the module are frozen", {}, [](torch::nn::Linear& net) {
    for (at::Tensor& parameter : net->parameters()) parameter.set_requires_grad(false);
  });
}

}  // namespace module_agreement_test
}  // namespace zero::testing
