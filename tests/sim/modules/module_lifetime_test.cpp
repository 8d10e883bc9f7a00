// The owner of a module's values before sharding, in one model, and after the model is destroyed. Also the units open
// at once, and the buffers in a state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "models/formats/safetensors.h"
#include "tests/sim/modules/library_world.h"

namespace zero::testing {
namespace module_lifetime_test {

struct VectorImpl : torch::nn::Module {
  explicit VectorImpl(int size) { values = register_parameter("values", torch::arange(size).to(torch::kFloat)); }
  at::Tensor values;
};
TORCH_MODULE(Vector);

struct VectorsImpl : torch::nn::Module {
  VectorsImpl() {
    a = register_module("a", Vector(40));
    b = register_module("b", Vector(50));
    large = register_module("large", Vector(1000));
    linear = register_module("linear", torch::nn::Linear(3, 2));
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : linear->parameters()) parameter.fill_(0.5);
  }
  at::Tensor forward(const at::Tensor& x) { return linear(x) + a->values.sum() + large->values.sum(); }
  Vector a{nullptr}, b{nullptr}, large{nullptr};
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(Vectors);
using Model = Sharded<Vectors>;

at::Tensor input() { return torch::ones({2, 3}); }

class ModuleLifetime : public ::testing::TestWithParam<int> {};

TEST_P(ModuleLifetime, UsingAParameterOfADestroyedModelThrows) {
  on_ranks(2, [](const World& world) {
    Vectors net;
    { Model(net, world, {.stage = GetParam()}).optimizer(SgdOptions()); }
    EXPECT_THAT([&] { net->forward(input()); },
                ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("whose sharded model is gone")));
    EXPECT_THROW(net->a->values.data_ptr(), c10::Error);
    EXPECT_THAT([&] { Model(net, world).optimizer(SgdOptions()); },
                ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("belongs to another sharded model")));
  });
}

TEST_P(ModuleLifetime, AModelMayBeMoved) {
  on_ranks(2, [](const World& world) {
    std::vector<Model> models;
    std::vector<ShardedOptimizer> optimizers;
    for (int m = 0; m < 3; ++m) {  // the vector grows, and moves them
      models.emplace_back(Vectors(), world, ShardOptions{.stage = GetParam()});
      optimizers.push_back(models.back().optimizer(SgdOptions()));
    }
    models.front() = std::move(models.back());
    models.pop_back();
    for (const int m : {0, 1}) models[std::size_t(m)].backward(models[std::size_t(m)](input()).sum());
    EXPECT_TRUE(optimizers[2].step().taken);  // it went to the front
    EXPECT_TRUE(models[1].optimizer().step().taken);
    EXPECT_THROW(optimizers[0].step(), InputError);
  });
}

TEST_P(ModuleLifetime, AModelKnowsItsStageFromTheBeginning) {
  for (const int degree : {0, 1})
    for (const int ranks : {1, 2})
      on_ranks(ranks, [degree](const World& world) {
        Model model(Vectors(), world, {.stage = GetParam(), .shard_degree = degree});
        const int want = world.size() == 1 || degree == 1 ? 0 : GetParam();
        EXPECT_EQ(model.stage(), want);
        model.optimizer(SgdOptions());
        EXPECT_EQ(model.stage(), want);
      });
}

TEST_P(ModuleLifetime, AModuleIsShardedOnce) {
  on_ranks(2, [](const World& world) {
    Vectors net;
    Model model(net, world, {.stage = GetParam()});
    model.optimizer(SgdOptions());
    EXPECT_THAT([&] { Model(net, world).optimizer(SgdOptions()); },
                ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("belongs to another sharded model")));
    model.backward(model(input()).sum());
  });
}

TEST_P(ModuleLifetime, AnOptimizerThatIsRefusedLeavesTheModuleAsItWas) {
  on_ranks(2, [](const World& world) {
    Vectors net;
    const at::Tensor want = net->forward(input()).detach();
    Model model(net, world, {.stage = GetParam()});
    EXPECT_THROW(model.optimizer(SgdOptions{.groups = {{.match = {"nothing.like.this"}, .lr = 1.0}}}), InputError);
    EXPECT_TRUE(at::equal(net->forward(input()).detach(), want));
    model.optimizer(SgdOptions());
    EXPECT_EQ(model(input()).sizes(), want.sizes());
  });
}

// LibTorch's own files take raw memory: all of it, or none.
TEST_P(ModuleLifetime, TorchSaveWritesTheValuesOrIsRefused) {
  on_ranks(2, [](const World& world) {
    Vectors net, back;
    const at::Tensor want = net->b->values.detach().clone();
    Model model(net, world, {.stage = GetParam()});
    model.optimizer(SgdOptions());
    std::stringstream file;
    if (GetParam() == 3) {
      EXPECT_THROW(torch::save(net, file), c10::Error);
      return;
    }
    torch::save(net, file);
    torch::load(back, file);
    EXPECT_TRUE(at::equal(back->b->values, want));
  });
}

TEST_P(ModuleLifetime, AModelMayBeHeldAsWhatAllModelsAre) {
  static_assert(!std::is_copy_constructible_v<ShardedModel>);
  on_ranks(2, [](const World& world) {
    Vectors net;
    const std::weak_ptr<VectorsImpl> held = net.ptr();
    std::unique_ptr<ShardedModel> model =
        std::make_unique<Model>(std::move(net), world, ShardOptions{.stage = GetParam()});
    model->optimizer(SgdOptions());
    model.reset();
    EXPECT_TRUE(held.expired());
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, ModuleLifetime, ::testing::Values(0, 2, 3));

// Two buffers, of which the smaller one holds either small unit. The order of earlier uses decides which unit
// lies where.
TEST(OpenUnits, AnyTwoMayBeOpenWhateverWasBefore) {
  on_ranks(2, [](const World& world) {
    Vectors net;
    Model model(net, world, {.stage = 3, .open_groups = 2});
    model.optimizer(SgdOptions());
    const at::Tensor a = torch::arange(40).to(torch::kFloat), large = torch::arange(1000).to(torch::kFloat);
    net->b->values.sum();
    EXPECT_TRUE(at::equal(torch::cat({net->a->values, net->large->values}), torch::cat({a, large})));
    net->b->values.sum();
    net->a->values.sum();
    EXPECT_TRUE(at::equal(torch::cat({net->a->values, net->large->values}), torch::cat({a, large})));
    EXPECT_TRUE(at::equal(torch::cat({net->large->values, net->a->values}), torch::cat({large, a})));
  });
}

TEST(OpenUnits, AUnitThatIsFrozenInPartIsOne) {
  on_ranks(2, [](const World& world) {
    Vectors net;
    net->linear->weight.set_requires_grad(false);
    Model model(net, world, {.stage = 3, .open_groups = 1});
    ShardedOptimizer optimizer = model.optimizer(SgdOptions());
    for (int step = 0; step < 2; ++step) {
      model.backward(model(input()).sum());
      EXPECT_TRUE(optimizer.step().taken);
    }
  });
}

struct Folder {
  std::string path = ::testing::TempDir() + "zero-module-lifetime-" + std::to_string(::getpid());
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(KeptBuffers, AreThoseOfTheDayOfWhateverMemory) {
  const Folder folder;
  on_ranks(2, [&](const World& world) {
    Vectors net;
    at::Tensor grid = net->register_buffer("grid", torch::arange(6).to(torch::kLong).view({2, 3}).t());
    at::Tensor moved = net->register_buffer("moved", torch::zeros({2}));
    Model model(net, world);
    model.optimizer(SgdOptions());
    at::Tensor late = net->register_buffer("late", torch::ones({2}, torch::kBool));
    moved.set_data(torch::full({3}, 2.0));
    model.save_state(folder.path);
    const at::Tensor want = grid.clone();
    grid.zero_(), moved.zero_(), late.zero_();
    model.load_state(folder.path);
    EXPECT_TRUE(at::equal(grid, want));
    EXPECT_TRUE(at::equal(moved, torch::full({3}, 2.0)));
    EXPECT_TRUE(late.all().item<bool>());
  });
}

TEST(KeptBuffers, MayBeExpanded) {
  const Folder folder;
  std::filesystem::create_directory(folder.path);
  for (const int ranks : {1, 3})
    on_ranks(ranks, [&](const World& world) {
      Vectors net;
      at::Tensor row = torch::arange(3).to(torch::kFloat) + world.rank();
      at::Tensor mask = net->register_buffer("mask", row.unsqueeze(0).expand({4, 3}));
      Model model(net, world);
      model.optimizer(SgdOptions());
      const at::Tensor want = torch::arange(3).to(torch::kFloat).expand({4, 3});
      EXPECT_TRUE(at::equal(mask, want));
      model.save_state(folder.path + "/state");
      model.save(folder.path + "/model.safetensors");
      row.zero_();
      model.load_state(folder.path + "/state");
      EXPECT_TRUE(at::equal(mask, want));
      row.zero_();
      model.load(folder.path + "/model.safetensors");
      EXPECT_TRUE(at::equal(mask, want));
      row.fill_(world.rank());
      model.backward(model(input()).sum());
      model.optimizer().step();
      EXPECT_TRUE(at::equal(mask, torch::zeros({4, 3})));
    });
}

TEST(KeptBuffers, OtherShapesAndTypesAreRefused) {
  const Folder folder;
  const auto with = [](const at::Tensor& buffer) {
    Vectors net;
    net->register_buffer("seen", buffer.clone());
    return net;
  };
  on_ranks(2, [&](const World& world) {
    Model model(with(torch::arange(4).to(torch::kFloat)), world);
    model.optimizer(SgdOptions());
    model.save_state(folder.path);
  });
  for (const at::Tensor& other :
       {torch::zeros({3}), torch::zeros({5}), torch::zeros({2, 2}), torch::zeros({4}, torch::kInt)})
    EXPECT_THAT(
        [&] {
          on_ranks(2, [&](const World& world) {
            Model model(with(other), world);
            model.optimizer(SgdOptions());
            model.load_state(folder.path);
          });
        },
        ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("holds no buffer:seen, ")));
}

// The last one of three ranks holds padding only. One unit has no element.
struct LittleImpl : torch::nn::Module {
  LittleImpl() {
    none = register_module("none", Vector(0));
    linear = register_module("linear", torch::nn::Linear(3, 2));
    register_buffer("nothing", torch::zeros({0, 2}));
    register_buffer("flags", torch::ones({3}, torch::kBool));
    register_buffer("count", torch::tensor(5, torch::kLong));
  }
  at::Tensor forward(const at::Tensor& x) { return linear(x) + none->values.sum(); }
  Vector none{nullptr};
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(Little);

TEST(KeptBuffers, AndStatesMayHaveNoElements) {
  for (const int stage : {0, 1, 2, 3}) {
    const Folder folder;
    on_ranks(3, [&](const World& world) {
      Little net;
      Sharded<Little> model(net, world, {.stage = stage});
      ShardedOptimizer optimizer = model.optimizer(AdamWOptions());
      model.backward(model(input()).sum());
      EXPECT_TRUE(optimizer.step().taken);
      model.save_state(folder.path);
      model.save(folder.path + ".safetensors");
      for (const auto& buffer : net->named_buffers()) at::Tensor(buffer.value()).zero_();
      EXPECT_EQ(model.load_state(folder.path), 1);
      EXPECT_TRUE(net->named_buffers()["flags"].all().item<bool>());
      EXPECT_EQ(net->named_buffers()["count"].item<int>(), 5);
    });
    const SafetensorsFile file(folder.path + ".safetensors");
    EXPECT_EQ(file.tensors().size(), 6u);
    std::filesystem::remove(folder.path + ".safetensors");
  }
}

TEST(OpenUnits, ModelsMayBeginWithInference) {
  on_ranks(2, [](const World& world) {
    Model model(Vectors(), world, {.stage = 3, .open_groups = 1});
    at::Tensor without;
    {
      const c10::InferenceMode inference;
      without = model(input()).clone();
    }
    EXPECT_TRUE(at::equal(model(input()).detach(), without));
  });
}

TEST(OpenUnits, SparseGradientsAreRefused) {
  on_ranks(2, [](const World& world) {
    torch::nn::Embedding words(torch::nn::EmbeddingOptions(5, 3).sparse(true));
    Sharded<torch::nn::Embedding> model(words, world, {.stage = 3});
    model.optimizer(SgdOptions());
    EXPECT_THAT(
        [&] {
          model.backward(model(torch::tensor({1, 2})).sum());
        },
        ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("parameter weight got a sparse gradient")));
  });
}

TEST(KeptBuffers, TheErrorForAFolderWithoutStatesUsesTheLibrarysWords) {
  EXPECT_THAT(
      [&] {
        on_ranks(2, [&](const World& world) {
          Model model(Vectors(), world);
          model.optimizer(SgdOptions());
          model.load_state("/nowhere/at/all");
        });
      },
      ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("name the folder that save_state() was given")));
}

}  // namespace module_lifetime_test
}  // namespace zero::testing
