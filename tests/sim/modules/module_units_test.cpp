// Which modules are units, and which memory they may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "tests/sim/modules/library_world.h"
#include "zero/modules/module_units.h"

namespace zero::testing {
namespace {

struct PairImpl : torch::nn::Module {
  PairImpl() {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})));
    inner = register_module("inner", torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::Linear(4, 4)));
  }
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Sequential inner{nullptr};
};
TORCH_MODULE(Pair);

struct StackImpl : torch::nn::Module {
  StackImpl() {
    layers = register_module("layers", torch::nn::ModuleList());
    for (int i = 0; i < 2; ++i) layers->push_back(Pair());
    head = register_module("head", torch::nn::Linear(4, 2));
  }
  torch::nn::ModuleList layers{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Stack);

std::vector<std::string> units_of(const torch::nn::Module& module, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  const ModuleUnits units(module, patterns);
  for (const ParameterUnit* unit : units.units()) names.push_back(unit->name());
  return names;
}

// A pattern's * stands for dots too, and docs/library.md promises a layer as a whole.
TEST(ModuleUnits, AModuleThatAPatternNamesIsOneUnitWithAllThatIsInIt) {
  using ::testing::ElementsAre;
  const Stack net;
  EXPECT_THAT(units_of(*net, {}), ElementsAre("layers.0", "layers.1", "head"));
  EXPECT_THAT(units_of(*net, {"layers.*"}), ElementsAre("layers.0", "layers.1", "the module itself"));
  EXPECT_THAT(units_of(*net, {"*"}), ElementsAre("layers", "head"));
  EXPECT_THAT(units_of(*net, {"layers.?", "layers.*.inner"}),
              ElementsAre("layers.0", "layers.0.inner", "layers.1", "layers.1.inner", "the module itself"));
  EXPECT_THAT(units_of(*net, {"layers", "layers.1"}), ElementsAre("layers", "layers.1", "the module itself"));
}

std::string refusal(const torch::nn::Module& module) {
  try {
    const ModuleUnits units(module);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// It would keep the values that the parameter had when it was sharded.
TEST(ModuleUnits, ABufferOverAParametersMemoryIsRefused) {
  Stack net;
  net->register_buffer("part", net->head->weight.detach().select(0, 1));
  EXPECT_THAT(refusal(*net),
              ::testing::AllOf(::testing::HasSubstr("buffer part shares memory with parameter head.weight"),
                               ::testing::HasSubstr("clone()")));
  Stack other;
  other->register_buffer("copy", other->head->weight.detach().clone());
  other->register_buffer("none", torch::empty({0}));
  EXPECT_EQ(refusal(*other), "nothing was thrown");
}

TEST(ModuleUnits, ABufferOverAParameterOfAnotherModelIsRefused) {
  on_ranks(2, [](const World& world) {
    Sharded<Stack> teacher(Stack(), world, {.stage = 3});
    Stack net;
    net->register_buffer("target", teacher->head->weight.detach());
    EXPECT_THAT(refusal(*net), ::testing::HasSubstr("buffer target is a view of a parameter of another sharded model"));
  });
}

}  // namespace
}  // namespace zero::testing
