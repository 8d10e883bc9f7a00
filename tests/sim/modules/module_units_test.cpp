// Which modules are units, and which memory they may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/memory_tracker.h"
#include "offload/memory/cpu_allocator.h"
#include "tests/sim/modules/library_world.h"
#include "zero/library/include/zero/deferred.h"
#include "zero/modules/module_units.h"

namespace zero::testing {
namespace {

struct PairImpl : torch::nn::Module {
  PairImpl() {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})));
    inner = register_module("inner", torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::Linear(4, 4)));
  }
  at::Tensor forward(const at::Tensor& x) { return inner->forward(norm(x)); }
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

struct TranslatorImpl : torch::nn::Module {
  explicit TranslatorImpl(int width = 8, int layers = 2) {
    using namespace torch::nn;
    embedding = register_module("embedding", Embedding(9, width));
    TransformerEncoderLayer layer(TransformerEncoderLayerOptions(width, 2).dim_feedforward(4 * width).dropout(0));
    encoder = register_module(
        "encoder", TransformerEncoder(
                       TransformerEncoderOptions(layer, layers).norm(AnyModule(LayerNorm(LayerNormOptions({width}))))));
    head = register_module("head", Linear(width, 9));
  }
  at::Tensor forward(const at::Tensor& ids) { return head(encoder(embedding(ids))); }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::TransformerEncoder encoder{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Translator);

struct AroundImpl : torch::nn::Module {
  AroundImpl() {
    inner = register_module("inner", Translator());
    scale = register_parameter("scale", torch::ones({1}));
  }
  Translator inner{nullptr};
  at::Tensor scale;
};
TORCH_MODULE(Around);

TEST(ModuleUnits, AChildThatIsMostlyAListIsPartedIntoItsElements) {
  using ::testing::ElementsAre;
  EXPECT_THAT(units_of(*Translator(), {}),
              ElementsAre("embedding", "encoder.layers.0", "encoder.layers.1", "encoder.norm", "head"));
  EXPECT_THAT(units_of(*Around(), {}), ElementsAre("the module itself", "inner.embedding", "inner.encoder.layers.0",
                                                   "inner.encoder.layers.1", "inner.encoder.norm", "inner.head"));
  // Elements of lists stay whole, with the lists inside them.
  const torch::nn::Sequential blocks(Pair{}, Pair{});
  EXPECT_THAT(units_of(*blocks, {}), ElementsAre("0", "1"));
}

std::optional<std::string> large_unit(const torch::nn::Module& module, const std::vector<std::string>& patterns = {}) {
  return ModuleUnits(module, patterns).large_unit();
}

TEST(ModuleUnits, AUnitOfMostParametersCausesAWarning) {
  using ::testing::HasSubstr;
  using ::testing::Optional;
  const Translator large(256, 3);
  EXPECT_EQ(large_unit(*large), std::nullopt);
  EXPECT_THAT(large_unit(*large, {"encoder", "head"}),
              Optional(::testing::AllOf(HasSubstr("unit encoder holds 99 % of the parameters"),
                                        HasSubstr("ShardOptions{.units = {\"encoder.layers.*\"}}"))));
  EXPECT_EQ(large_unit(*Translator(), {"encoder", "head"}), std::nullopt);                   // small ones may be whole
  EXPECT_EQ(large_unit(*torch::nn::Sequential(torch::nn::Linear(512, 512))), std::nullopt);  // has no parts
}

/// The most bytes of a rank in some steps.
std::int64_t peak_of(int stage) {
  CpuAllocator allocator;
  allocator.install();
  std::vector<MemoryTracker> trackers(2);
  on_ranks(2, [&](const World& world) {
    const TrackerScope scope(trackers[std::size_t(world.rank())]);
    Sharded<Translator> model(deferred([] { return Translator(64, 8); }), world, {.stage = stage});
    ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
    for (int step = 0; step < 2; ++step) {
      model.backward(model->forward(torch::ones({2, 2}, torch::kLong)).sum());
      optimizer.step();
    }
  });
  return trackers[0].peak();
}

TEST(ModuleUnits, StageThreeOfATransformerEncoderNeedsLessThanStageTwo) {
  const std::int64_t two = peak_of(2), three = peak_of(3);
  EXPECT_LT(three, two - two / 20);
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

// There is no memory yet, but the owner of each storage is known.
TEST(ModuleUnits, MemoryThatADeferredModuleWouldShareIsRefused) {
  const auto first_weight = [](Stack& net) {
    return net->layers[0]->as<Pair>()->inner[0]->as<torch::nn::Linear>()->weight;
  };
  using Share = std::function<void(Stack&)>;
  const std::vector<std::pair<Share, std::string>> shares{
      {[&](Stack& net) {
         net->layers[1]->as<Pair>()->inner[1]->as<torch::nn::Linear>()->weight.set_data(first_weight(net).detach());
       },
       "parameters layers.0.inner.0.weight and layers.1.inner.1.weight share memory"},
      {[&](Stack& net) { net->head->weight.set_data(first_weight(net).detach().narrow(0, 1, 2)); },
       "parameters layers.0.inner.0.weight and head.weight share memory"},
      {[&](Stack& net) { net->register_buffer("part", net->head->weight.detach().select(0, 1)); },
       "buffer part shares memory with parameter head.weight"}};
  for (const auto& [share, message] : shares) {
    const auto build = [&] {
      Stack net;
      share(net);
      return net;
    };
    EXPECT_THAT(refusal(*build()), ::testing::HasSubstr(message));
    EXPECT_THAT(refusal(*deferred(build)), ::testing::HasSubstr(message));
  }
  EXPECT_EQ(refusal(*deferred([] { return Stack(); })), "nothing was thrown");
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
