// Modules that are built without memory: values as their constructors give them, the same on any processes, and never
// all of them on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/memory_tracker.h"
#include "offload/memory/cpu_allocator.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"
#include "zero/library/include/zero/deferred.h"
#include "zero/library/include/zero/safetensors.h"

namespace zero::testing {
namespace {

using ::testing::HasSubstr;
using Values = std::map<std::string, at::Tensor>;

/// A constructor does what constructors do: initialisers of LibTorch, values that are computed, views, other types.
struct MixedImpl : torch::nn::Module {
  explicit MixedImpl(bool is_double = true) {
    embedding = register_module("embedding", torch::nn::Embedding(torch::nn::EmbeddingOptions(9, 8).padding_idx(2)));
    torch::nn::TransformerEncoderLayer layer(
        torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0));
    encoder = register_module("encoder", torch::nn::TransformerEncoder(layer, 2));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    scaled = register_parameter("scaled", torch::randn({4, 3}) * 0.5 + 2);
    ramp = register_parameter("ramp", torch::linspace(0, 1, 5));
    table = register_buffer("table", torch::arange(6).to(torch::kFloat).outer(torch::ones({2})).sin());
    torch::nn::init::orthogonal_(scaled);
    const torch::NoGradGuard no_grad;
    scaled.select(1, 1).fill_(7);
    ramp.copy_(torch::tensor({5.0, 4.0, 3.0, 2.0, 1.0}));
    if (is_double) to(torch::kDouble);
  }
  at::Tensor forward(const at::Tensor& ids) {
    return norm(encoder(embedding(ids)).mean(0)).sum() + scaled.sum() + ramp.sum() + table.sum();
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::TransformerEncoder encoder{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  at::Tensor scaled, ramp, table;
};
TORCH_MODULE(Mixed);

/// Ranks are threads with one generator, so only the main one draws.
void seed(const World& world, int number) {
  if (world.is_main()) torch::manual_seed(number);
  world.barrier();
}

Values values_of(ShardedModel& model) {
  Values values;
  model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { values[name] = value.clone(); });
  return values;
}

Values initial_values(int ranks, int stage, int number = 1) {
  Values found;
  on_ranks(ranks, [&](const World& world) {
    Mixed net = deferred([] { return Mixed(); });
    EXPECT_TRUE(net->embedding->weight.is_meta());
    seed(world, number);
    Sharded<Mixed> model(net, world, {.stage = stage});
    model.optimizer(AdamWOptions());
    EXPECT_FALSE(net->embedding->weight.is_meta());
    const Values own = values_of(model);
    EXPECT_TRUE(at::equal(net->table, Mixed()->table));
    if (world.is_main()) found = own;
  });
  return found;
}

TEST(ModuleDeferred, HasTheValuesThatItsConstructorGives) {
  const Values values = initial_values(2, 3);
  const Mixed whole;
  ASSERT_EQ(values.size(), whole->named_parameters().size());
  for (const auto& parameter : whole->named_parameters()) {
    const at::Tensor& value = values.at(parameter.key());
    EXPECT_EQ(value.sizes(), parameter.value().sizes()) << parameter.key();
    EXPECT_EQ(value.scalar_type(), torch::kDouble);
    if (parameter.key().ends_with("bias") || parameter.key() == "ramp")
      EXPECT_EQ(value.eq(0).all().item<bool>(), parameter.value().detach().eq(0).all().item<bool>()) << parameter.key();
  }
  EXPECT_TRUE(at::equal(values.at("ramp"), whole->ramp));
  EXPECT_TRUE(at::equal(values.at("norm.weight"), at::ones({8}, at::kDouble)));
  EXPECT_TRUE(values.at("scaled").select(1, 1).eq(7).all().item<bool>());
  EXPECT_LT(values.at("scaled").select(1, 0).abs().max().item<double>(), 1);  // of a unit vector
  EXPECT_TRUE(values.at("embedding.weight")[2].eq(0).all().item<bool>());
  EXPECT_NEAR(values.at("embedding.weight").std().item<double>(), 1, 0.3);
  // TransformerEncoder copies its layer.
  EXPECT_TRUE(at::equal(values.at("encoder.layers.0.linear1.weight"), values.at("encoder.layers.1.linear1.weight")));
  EXPECT_FALSE(at::equal(values.at("encoder.layers.0.linear1.weight").view({-1}),
                         values.at("encoder.layers.0.linear2.weight").view({-1})));
}

TEST(ModuleDeferred, IsTheSameOnAnyProcessesAndByTheSeed) {
  const Values want = initial_values(1, 0);
  for (const auto& [ranks, stage] : std::vector<std::pair<int, int>>{{2, 0}, {2, 2}, {3, 3}, {4, 1}}) {
    const Values got = initial_values(ranks, stage);
    for (const auto& [name, value] : want) EXPECT_TRUE(at::equal(got.at(name), value)) << name << ' ' << ranks << stage;
  }
  EXPECT_FALSE(at::equal(initial_values(2, 3, 2).at("embedding.weight"), want.at("embedding.weight")));
}

TEST(ModuleDeferred, Trains) {
  on_ranks(2, [](const World& world) {
    Sharded<Mixed> model(deferred([] { return Mixed(); }), world);
    ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
    for (int step = 0; step < 2; ++step) {
      model.backward(model->forward(torch::arange(6, torch::kLong).view({3, 2})));
      EXPECT_TRUE(optimizer.step().taken);
    }
  });
}

struct DeepImpl : torch::nn::Module {
  static constexpr int width = 64, layers = 40;
  DeepImpl() {
    list = register_module("list", torch::nn::ModuleList());
    for (int i = 0; i < layers; ++i) list->push_back(torch::nn::Linear(width, width));
  }
  torch::nn::ModuleList list{nullptr};
};
TORCH_MODULE(Deep);

/// Bytes of a rank after it was set up, and the most that it held until then.
struct SetUpBytes {
  std::int64_t rest = 0, peak = 0;
};

SetUpBytes set_up(int ranks, const std::function<void(Sharded<Deep>&)>& load) {
  CpuAllocator allocator;
  allocator.install();
  std::vector<MemoryTracker> trackers(ranks);
  SetUpBytes bytes;
  on_ranks(ranks, [&](const World& world) {
    MemoryTracker& tracker = trackers[std::size_t(world.rank())];
    const TrackerScope scope(tracker);
    Sharded<Deep> model(deferred([] { return Deep(); }), world);
    EXPECT_LT(tracker.peak(), 1 << 14);  // nothing of a layer
    load(model);
    model.optimizer(AdamWOptions());
    if (world.is_main()) bytes = {tracker.live(), tracker.peak()};
  });
  return bytes;
}

TEST(ModuleDeferred, IsNeverWholeOnARank) {
  constexpr std::int64_t layer = 4 * (DeepImpl::width + 1) * DeepImpl::width;
  for (const int ranks : {1, 2, 4}) {
    const SetUpBytes bytes = set_up(ranks, [](Sharded<Deep>&) {});
    EXPECT_GE(bytes.rest, 4 * DeepImpl::layers * layer / ranks);  // weights, gradients and two moments
    EXPECT_LE(bytes.peak, bytes.rest + bytes.rest / 20) << ranks << " ranks, rest " << bytes.rest;
  }
}

struct Folder {
  Folder() : path(::testing::TempDir() + "zero-deferred-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

TEST(ModuleDeferred, TakesItsValuesFromAFile) {
  const Folder folder;
  const std::string deep = folder.path + "/deep.safetensors", mixed = folder.path + "/mixed.safetensors";
  const auto write = [](const std::string& path, const torch::nn::Module& net) {
    NamedTensors tensors;
    for (const auto& parameter : net.named_parameters()) tensors[parameter.key()] = parameter.value().detach() + 0.5;
    for (const auto& buffer : net.named_buffers()) tensors[buffer.key()] = buffer.value() + 1;
    write_safetensors(path, tensors);
    return tensors;
  };
  write(deep, *Deep());
  const NamedTensors want = write(mixed, *Mixed(false));
  const SetUpBytes bytes = set_up(2, [&](Sharded<Deep>& model) { model.load(deep); });
  EXPECT_LE(bytes.peak, bytes.rest + bytes.rest / 20) << bytes.rest;
  on_ranks(2, [&](const World& world) {
    Mixed net = deferred([] { return Mixed(false); });
    Sharded<Mixed> model(net, world);
    model.load(mixed);
    model.optimizer(AdamWOptions());
    for (const auto& [name, value] : values_of(model)) EXPECT_TRUE(at::equal(value, want.at(name))) << name;
    EXPECT_TRUE(at::equal(net->table, want.at("table")));
    EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 1);
  });
}

TEST(ModuleDeferred, RefusesWhatNeedsValues) {
  EXPECT_THAT(message_of<InputError>([] {
                (void)deferred([] {
                  torch::nn::Linear net(2, 2);
                  (void)net->weight.sum().item<float>();
                  return net;
                });
              }),
              ::testing::AllOf(HasSubstr("inside zero::deferred()"), HasSubstr("Tensors have no values there")));
  torch::nn::Linear late = deferred([] { return torch::nn::Linear(2, 2); });
  const auto refusal = HasSubstr("convert and initialise inside the zero::deferred() that builds it");
  EXPECT_THAT(message_of<InputError>([&] { late->to(torch::kDouble); }), refusal);
  EXPECT_THAT(message_of<InputError>([&] { torch::nn::init::zeros_(late->weight); }), refusal);
  EXPECT_THAT(message_of<InputError>([&] { late->forward(torch::ones({1, 2})); }), refusal);
  torch::nn::Sequential partly(torch::nn::Linear(2, 2), late);
  EXPECT_THAT(
      message_of<InputError>([&] {
        on_ranks(2, [&](const World& world) { Sharded<torch::nn::Sequential>(partly, world).optimizer(SgdOptions()); });
      }),
      HasSubstr("build the whole module inside zero::deferred()"));
}

// A second one has a tape of its own, which the module's values do not follow from.
TEST(ModuleDeferred, IsBuiltAndInitialisedInOne) {
  const torch::nn::Linear net = deferred([] { return torch::nn::Linear(2, 2); });
  const auto refusal = HasSubstr("build and initialise a module inside one zero::deferred()");
  EXPECT_THAT(message_of<InputError>([&] { deferred([&] { torch::nn::init::zeros_(net->weight); }); }), refusal);
  EXPECT_THAT(message_of<InputError>([&] {
                (void)deferred([&] {
                  torch::nn::Linear copy(2, 2);
                  const torch::NoGradGuard no_grad;
                  copy->weight.copy_(net->weight);
                  return copy;
                });
              }),
              refusal);
}

TEST(ModuleDeferred, IsInitialisedByParametersOfAShardedModel) {
  on_ranks(2, [](const World& world) {
    Sharded<torch::nn::Linear> teacher(torch::nn::Linear(4, 4), world, {.stage = 3});
    teacher.optimizer(SgdOptions());
    const torch::nn::Linear net = deferred([&] {
      torch::nn::Linear student(4, 4);
      const torch::NoGradGuard no_grad;
      student->weight.copy_(teacher->weight);
      return student;
    });
    Sharded<torch::nn::Linear> model(net, world, {.stage = 3});
    model.optimizer(SgdOptions());
    EXPECT_TRUE(at::equal(values_of(model).at("weight"), values_of(teacher).at("weight")));
  });
}

// Outside nothing changes.
TEST(ModuleDeferred, ALambdaThatThrowsEndsIt) {
  EXPECT_THROW((void)deferred([]() -> torch::nn::Linear { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_TRUE(torch::empty({2}).is_cpu());
  EXPECT_TRUE(deferred([] { return torch::zeros({2}, torch::kCPU); }).is_cpu());
}

}  // namespace
}  // namespace zero::testing
