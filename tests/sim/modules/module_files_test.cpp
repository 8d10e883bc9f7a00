// A sharded model's files: saved values equal LibTorch's, and a run resumed at another stage with other ranks equals an
// uninterrupted one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/safetensors.h"
#include "tests/sim/modules/library_world.h"
#include "tests/sim/modules/odd_net.h"
#include "tests/unit/message_of.h"
#include "zero/checkpoint/save_checkpoint.h"
#include "zero/library/include/zero/safetensors.h"
#include "zero/modules/sharded_module.h"

namespace zero::testing {
namespace module_files_test {

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
  for (const auto& [stage, ranks, degree, then_stage, then_ranks] : std::vector<std::array<int, 5>>{
           {3, 2, 0, 3, 2}, {3, 4, 0, 1, 3}, {3, 4, 2, 2, 2}, {0, 2, 0, 3, 4}, {2, 3, 0, 0, 1}}) {
    const std::string folder = text(scratch.path, "/made/when/saved/", stage, ranks, degree, "/");
    on_ranks(ranks, [&](const World& world) {
      Sharded<OddNet> model(build_net(7), world, {.stage = stage, .shard_degree = degree});
      model.optimizer(AdamWOptions{.lr = 1e-2});
      train(model, 0, 3);
      model.save_state(folder);
      train(model, 3, 4);  // lost
    });
    on_ranks(then_ranks, [&](const World& world) {
      Sharded<OddNet> model(build_net(8), world, {.stage = then_stage});
      model.optimizer(AdamWOptions{.lr = 1e-2});
      EXPECT_EQ(model.load_state(folder), 3);
      train(model, 3, 6);
      const auto got = weights_of(model);
      for (const auto& [name, value] : want)
        EXPECT_LE((got.at(name) - value).abs().max().item<double>(), 1e-12) << name << " stage " << stage;
    });
  }
}

// Two layers of which the first one is frozen, or both are trained.
torch::nn::Sequential layers(std::uint64_t seed, bool frozen, int inner = 5) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  torch::manual_seed(seed);
  torch::nn::Sequential net{torch::nn::Linear(3, inner), torch::nn::Linear(inner, 2)};
  for (at::Tensor& parameter : net[0]->parameters()) parameter.set_requires_grad(!frozen);
  return net;
}
using Layers = Sharded<torch::nn::Sequential>;

std::map<std::string, at::Tensor> values_of(Layers& model) {
  std::map<std::string, at::Tensor> values;
  model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { values[name] = value.clone(); });
  return values;
}

TEST(ModuleFiles, FrozenParametersComeBackInAnyPrecision) {
  for (const at::ScalarType saved : {fp32, bf16})
    for (const at::ScalarType loaded : {fp32, bf16}) {
      const Scratch scratch;
      std::map<std::string, at::Tensor> want;
      on_ranks(3, [&](const World& world) {
        Layers model(layers(7, true), world, {.stage = 3, .precision = saved});
        model.optimizer(SgdOptions());
        model.save_state(scratch.path);
        const auto values = values_of(model);
        if (world.is_main()) want = values;
      });
      for (const int stage : {0, 1, 3})
        on_ranks(2, [&](const World& world) {
          Layers model(layers(8, true), world, {.stage = stage, .precision = loaded});
          model.optimizer(SgdOptions());
          model.load_state(scratch.path);
          for (const auto& [name, value] : values_of(model)) {
            const bool frozen = name.starts_with("0.");
            EXPECT_TRUE(at::equal(value, frozen ? want.at(name).to(loaded).to(value.scalar_type()) : want.at(name)))
                << name << " stage " << stage << ' ' << saved << loaded;
          }
        });
    }
}

// Older states had no frozen parameters, which stay as the module has them.
TEST(ModuleFiles, StatesWithoutFrozenParametersAreRead) {
  const Scratch scratch;
  on_ranks(2, [&](const World& world) {
    torch::nn::Sequential net = layers(7, true);
    Mesh mesh(*world.impl().ranks, MeshShape::hybrid(world.size(), 0), world.impl().host);
    StatesOptions options;
    options.plan = ShardPlan::for_stage(3);
    ShardedModule model(*net, ModuleUnits(*net), mesh, options);
    FileCalls calls;
    CheckpointFolders folders(calls, scratch.path);
    save_checkpoint(model.states(), {}, {.steps = 3, .updates = 3}, folders, calls, *world.impl().control);
  });
  on_ranks(2, [&](const World& world) {
    const auto first = layers(7, true)->named_parameters(), others = layers(8, true)->named_parameters();
    Layers model(layers(8, true), world);
    model.optimizer(AdamWOptions());
    EXPECT_EQ(model.load_state(scratch.path), 3);
    for (const auto& [name, value] : values_of(model))
      EXPECT_TRUE(at::equal(value, (name.starts_with("0.") ? others : first)[name])) << name;
  });
}

TEST(ModuleFiles, StatesOfOtherFrozenParametersAreRefused) {
  const Scratch scratch;
  on_ranks(2, [&](const World& world) {
    Layers model(layers(7, true), world);
    model.optimizer(SgdOptions());
    model.save_state(scratch.path);
  });
  const auto refusal = [&](const torch::nn::Sequential& net) {
    return message_of<InputError>([&] {
      on_ranks(1, [&](const World& world) {
        Layers model(net, world);
        model.optimizer(SgdOptions());
        model.load_state(scratch.path);
      });
    });
  };
  EXPECT_THAT(refusal(layers(7, false)), ::testing::HasSubstr("does not hold 0.weight, which is trained here"));
  const torch::nn::Sequential less{torch::nn::Identity(), torch::nn::Linear(5, 2)};
  EXPECT_THAT(refusal(less), ::testing::HasSubstr("holds 0.bias, which is not frozen here"));
  torch::nn::Sequential more = layers(7, true);
  more->push_back(torch::nn::Linear(2, 2));
  for (at::Tensor& parameter : more[2]->parameters()) parameter.set_requires_grad(false);
  EXPECT_THAT(refusal(more), ::testing::HasSubstr("does not hold 2.weight, which is frozen here"));
}

/// Names in a folder of states.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

void one_step(Layers& model) {
  model.backward(model->forward(torch::ones({2, 3})).sum());
  model.optimizer().step();
}

TEST(ModuleFiles, AStateOfTheSameStepIsReplaced) {
  const Scratch scratch;
  on_ranks(2, [&](const World& world) {
    torch::nn::Sequential net = layers(7, false);
    at::Tensor seen = net->register_buffer("seen", torch::zeros({2}));
    Layers model(net, world);
    model.optimizer(SgdOptions());
    one_step(model);
    model.save_state(scratch.path);
    seen.fill_(5);
    model.save_state(scratch.path);
    seen.zero_();
    EXPECT_EQ(model.load_state(scratch.path), 1);
    EXPECT_EQ(seen[1].item<float>(), 5);
  });
  EXPECT_THAT(names_in(scratch.path), ::testing::ElementsAre("step-00000001"));
}

// A run killed in its first save_state() leaves no state.
TEST(ModuleFiles, AProgramAsksWhetherThereIsAState) {
  const Scratch scratch;
  const std::string folder = scratch.path + "/states";
  on_ranks(2, [&](const World& world) {
    Layers model(layers(7, false), world);
    model.optimizer(SgdOptions());
    EXPECT_FALSE(model.has_state(folder));
    if (world.is_main()) std::filesystem::create_directories(folder + "/step-00000001.tmp");
    world.barrier();
    EXPECT_FALSE(model.has_state(folder));
    one_step(model);
    model.save_state(folder);
    EXPECT_TRUE(model.has_state(folder));
    EXPECT_EQ(model.load_state(folder), 1);
  });
}

// A program that starts anew in an earlier one's folder resumes from its own states, and the earlier ones are kept.
TEST(ModuleFiles, TheLastSaveIsLoadedWhateverTheFolderHeld) {
  const Scratch scratch;
  const auto run = [&](int steps) {
    on_ranks(2, [&](const World& world) {
      Layers model(layers(7, false), world);
      model.optimizer(SgdOptions());
      for (int step = 0; step < steps; ++step) {
        one_step(model);
        model.save_state(scratch.path);
      }
      EXPECT_EQ(model.load_state(scratch.path), steps);
    });
  };
  run(4);
  run(1);
  EXPECT_THAT(names_in(scratch.path),
              ::testing::UnorderedElementsAre("step-00000001", "step-00000003.later", "step-00000004.later"));
}

TEST(ModuleFiles, AStateThatCannotBeWrittenLeavesNothing) {
  const Scratch scratch;
  on_ranks(2, [&](const World& world) {
    Layers model(layers(7, false), world);
    model.optimizer(SgdOptions());
    one_step(model);
    rlimit limit{};
    if (world.is_main()) {
      ::getrlimit(RLIMIT_FSIZE, &limit);
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit none{0, limit.rlim_max};
      ::setrlimit(RLIMIT_FSIZE, &none);
    }
    world.barrier();
    EXPECT_THROW(model.save_state(scratch.path), Error);
    world.barrier();
    if (world.is_main()) {
      ::setrlimit(RLIMIT_FSIZE, &limit);
      EXPECT_THAT(names_in(scratch.path), ::testing::IsEmpty());
    }
    world.barrier();
    one_step(model);
    model.save_state(scratch.path);
    EXPECT_EQ(model.load_state(scratch.path), 2);
  });
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

// Some processes hold no part of the tensor that is wrong.
TEST(ModuleFiles, AFileOfOtherTypesChangesNothing) {
  const Scratch scratch;
  const std::string path = scratch.path + "/other.safetensors";
  for (const bool of_buffer : {false, true})
    for (const bool divided : {false, true}) {
      const at::Tensor numbers = torch::ones({2}, torch::kLong);
      write_safetensors(path, {{"weight", torch::ones({2, 2})},
                               {"bias", of_buffer ? torch::ones({2}) : numbers},
                               {"seen", torch::ones({2})},
                               {"then", of_buffer ? numbers : torch::ones({2})}});
      on_ranks(4, [&](const World& world) {
        torch::nn::Linear net(2, 2);
        const at::Tensor seen = net->register_buffer("seen", torch::zeros({2}));
        net->register_buffer("then", torch::zeros({2}));
        Sharded<torch::nn::Linear> model(net, world, {.stage = 3});
        if (divided) model.optimizer(SgdOptions());
        EXPECT_THAT([&] { model.load(path); },
                    ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("is I64 there")));
        EXPECT_TRUE(at::equal(seen, torch::zeros({2})));
        model.for_each_parameter([](const std::string& name, const at::Tensor& value) {
          EXPECT_FALSE(at::equal(value, torch::ones(value.sizes()))) << name;
        });
      });
    }
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

}  // namespace module_files_test
}  // namespace zero::testing
