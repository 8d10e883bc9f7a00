// A sharded model's files: what is saved is what LibTorch has, and a run that goes on from a folder, at another stage and
// with other ranks, is the run that was not interrupted.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "models/formats/safetensors.h"
#include "tests/sim/modules/library_world.h"
#include "tests/sim/modules/odd_net.h"

namespace zero::testing {
namespace {

struct Scratch {
  std::string path = ::testing::TempDir() + "zero-module-files-" + std::to_string(::getpid());
  Scratch() { std::filesystem::remove_all(path), std::filesystem::create_directories(path); }
  ~Scratch() { std::filesystem::remove_all(path); }
};

constexpr int rows = 6;

OddNet build_net(std::uint64_t seed) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  torch::manual_seed(seed);
  return OddNet();
}

void train(Sharded<OddNet>& model, int begin, int end) {
  const World& world = model.world();
  for (int step = begin; step < end; ++step) {
    const int from = rows * world.rank() / world.size(), to = rows * (world.rank() + 1) / world.size();
    const OddBatch batch = odd_batch(step, rows, from, to - from);
    model.backward(odd_loss(*model.operator->(), batch, step % 2), to - from);
    model->seen[0] += step;  // a buffer that moves
    model.optimizer().step();
  }
}

std::map<std::string, at::Tensor> weights_of(Sharded<OddNet>& model) {
  std::map<std::string, at::Tensor> weights;
  model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { weights[name] = value.clone(); });
  weights["seen"] = model->seen.clone();
  return weights;
}

TEST(ModuleFiles, StateGoesOnAtAnyStageAndOnAnyRanks) {
  const Scratch scratch;
  std::map<std::string, at::Tensor> want;
  on_ranks(1, [&](const World& world) {
    Sharded<OddNet> model(build_net(7), world, {.stage = 0});
    model.optimizer(AdamWOptions{.lr = 1e-2});
    train(model, 0, 6);
    want = weights_of(model);
  });
  for (const auto& [stage, ranks, then_stage, then_ranks] :
       std::vector<std::array<int, 4>>{{3, 2, 3, 2}, {3, 4, 1, 3}, {0, 2, 3, 4}, {2, 3, 0, 1}}) {
    const std::string folder = scratch.path + "/state" + std::to_string(stage) + std::to_string(ranks);
    on_ranks(ranks, [&](const World& world) {
      Sharded<OddNet> model(build_net(7), world, {.stage = stage});
      model.optimizer(AdamWOptions{.lr = 1e-2});
      train(model, 0, 3);
      model.save_state(folder);
      train(model, 3, 4);  // lost
    });
    on_ranks(then_ranks, [&](const World& world) {
      OddNet net = build_net(8);
      {  // frozen weights are not states: they come from where the model comes from
        const torch::NoGradGuard no_grad;
        const OddNet first = build_net(7);
        for (const auto& parameter : first->named_parameters())
          if (!parameter.value().requires_grad()) net->named_parameters()[parameter.key()].copy_(parameter.value());
      }
      Sharded<OddNet> model(net, world, {.stage = then_stage});
      model.optimizer(AdamWOptions{.lr = 1e-2});
      EXPECT_EQ(model.load_state(folder), 3);
      train(model, 3, 6);
      const auto got = weights_of(model);
      for (const auto& [name, value] : want)
        EXPECT_LE((got.at(name) - value).abs().max().item<double>(), 1e-12) << name << " stage " << stage;
    });
  }
}

TEST(ModuleFiles, RandomNumbersGoOn) {
  const Scratch scratch;
  on_ranks(1, [&](const World& world) {
    Sharded<OddNet> model(build_net(7), world);
    model.optimizer(SgdOptions());
    torch::manual_seed(99);
    torch::rand({3});
    model.save_state(scratch.path);
    const at::Tensor want = torch::rand({5});
    torch::manual_seed(1);
    model.load_state(scratch.path);
    EXPECT_TRUE(at::equal(torch::rand({5}), want));
  });
}

TEST(ModuleFiles, SavesAndLoadsParametersAndBuffersUnderTheirNames) {
  const Scratch scratch;
  const std::string path = scratch.path + "/model.safetensors";
  for (const int stage : {0, 3}) {
    std::map<std::string, at::Tensor> saved;
    on_ranks(2, [&](const World& world) {
      Sharded<OddNet> model(build_net(7), world, {.stage = stage});
      model.optimizer(AdamWOptions());
      train(model, 0, 2);
      model.save(path);
      const auto weights = weights_of(model);
      if (world.is_main()) saved = weights;
    });
    const SafetensorsFile file(path);
    EXPECT_EQ(file.tensors().size(), saved.size());
    for (const auto& [name, value] : saved) EXPECT_TRUE(at::equal(file.read(name), value)) << name;
    for (const bool divided : {false, true})
      on_ranks(3, [&](const World& world) {
        Sharded<OddNet> model(build_net(8), world, {.stage = 3});
        if (divided) model.optimizer(AdamWOptions());
        model.load(path);
        const auto weights = weights_of(model);
        for (const auto& [name, value] : saved) EXPECT_TRUE(at::equal(weights.at(name), value)) << name << divided;
      });
  }
  on_ranks(2, [&](const World& world) {
    Sharded<torch::nn::Linear> other(torch::nn::Linear(2, 2), world);
    EXPECT_THROW(other.load(path), InputError);
  });
}

}  // namespace
}  // namespace zero::testing
