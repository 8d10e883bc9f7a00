// States in fewer bytes, as the library's options have them: the same bits on any processes and at any stage, through
// files too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/memory_tracker.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"

namespace zero::testing {
namespace module_storage_test {

struct LayersImpl : torch::nn::Module {
  LayersImpl() {
    first = register_module("first", torch::nn::Linear(6, 8));
    inner = register_module("inner", torch::nn::Linear(8, 8));
    last = register_module("last", torch::nn::Linear(8, 3));
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters())
      parameter.copy_(torch::arange(parameter.numel()).mul(0.7).sin().mul(0.4).view(parameter.sizes()));
  }
  at::Tensor forward(const at::Tensor& x) { return last(torch::tanh(inner(torch::tanh(first(x))))); }
  torch::nn::Linear first{nullptr}, inner{nullptr}, last{nullptr};
};
TORCH_MODULE(Layers);
using Model = Sharded<Layers>;
using Values = std::map<std::string, at::Tensor>;

const ShardOptions rounded{.state_dtype = bf16, .seed = 5};
const ShardOptions split{.precision = bf16, .master_dtype = Masters::split};
const ShardOptions both{.precision = bf16, .state_dtype = bf16, .master_dtype = Masters::split, .seed = 5};

ShardOptions at_stage(int stage, ShardOptions options) {
  options.stage = stage;
  return options;
}

// All processes have the same rows: sums over a power of two of them are exact.
void train(Model& model, int begin, int end) {
  for (int step = begin; step < end; ++step) {
    const at::Tensor rows = torch::arange(24).add(step).cos().view({4, 6});
    model.backward(model(rows.to(model.unwrap()->first->weight.scalar_type())).pow(2).mean());
    model.optimizer().step();
  }
}

Values values_of(Model& model) {
  Values values;
  model.for_each_parameter([&](const std::string& name, const at::Tensor& value) { values[name] = value.clone(); });
  return values;
}

/// The main process's values after some steps.
Values trained(int ranks, const ShardOptions& options, const OptimizerSettings& settings, int steps = 4) {
  Values values;
  on_ranks(ranks, [&](const World& world) {
    Model model(Layers(), world, options);
    model.optimizer(settings);
    train(model, 0, steps);
    const Values own = values_of(model);
    if (world.is_main()) values = own;
  });
  return values;
}

bool equal(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && x.second.equal(y.second); });
}

const std::vector<std::pair<int, int>> layouts{{1, 0}, {2, 0}, {2, 1}, {2, 2}, {2, 3}, {4, 3}};  // processes, stage

TEST(ModuleStorage, HasTheSameBitsOnAnyProcesses) {
  for (const OptimizerSettings& settings : std::vector<OptimizerSettings>{
           AdamWOptions{.lr = 1e-2}, SgdOptions{.lr = 1e-1}, LionOptions{.lr = 1e-2}, ProdigyOptions{.lr = 1}})
    for (const ShardOptions& options : {rounded, both}) {
      const Values want = trained(1, at_stage(0, options), settings);
      for (const auto& [ranks, stage] : layouts)
        EXPECT_TRUE(equal(want, trained(ranks, at_stage(stage, options), settings)))
            << settings.index() << ": " << ranks << " processes, stage " << stage;
    }
}

TEST(ModuleStorage, RoundsByTheSeed) {
  const AdamWOptions settings{.lr = 1e-2};
  ShardOptions other = rounded;
  other.seed = 6;
  const Values values = trained(2, rounded, settings);
  EXPECT_FALSE(equal(values, trained(2, other, settings)));
  EXPECT_FALSE(equal(values, trained(2, {}, settings)));
}

TEST(ModuleStorage, SplitsMastersExactly) {
  const AdamWOptions settings{.lr = 1e-2};
  const Values want = trained(1, {.stage = 0, .precision = bf16}, settings);
  for (const auto& [ranks, stage] : layouts) EXPECT_TRUE(equal(want, trained(ranks, at_stage(stage, split), settings)));
}

TEST(ModuleStorage, ComesBackFromFilesOnOtherProcesses) {
  const std::string folder = ::testing::TempDir() + "zero-module-storage-" + std::to_string(::getpid());
  const AdamWOptions settings{.lr = 1e-2};
  for (const ShardOptions& options : {rounded, split, both}) {
    std::filesystem::remove_all(folder);
    on_ranks(4, [&](const World& world) {
      Model model(Layers(), world, options);
      model.optimizer(settings);
      train(model, 0, 2);
      model.save_state(folder);
    });
    const Values want = trained(1, at_stage(0, options), settings);
    for (const auto& [ranks, stage] : layouts)
      on_ranks(ranks, [&, stage = stage](const World& world) {
        Model model(Layers(), world, at_stage(stage, options));
        model.optimizer(settings);
        EXPECT_EQ(model.load_state(folder), 2);
        train(model, 2, 4);
        EXPECT_TRUE(equal(want, values_of(model))) << "stage " << stage;
      });
  }
  // Masters are whole in files; states are of the type that they were saved in.
  on_ranks(2, [&](const World& world) {
    Model model(Layers(), world, {.precision = bf16, .state_dtype = bf16, .seed = 5});
    model.optimizer(settings);
    EXPECT_EQ(model.load_state(folder), 2);
  });
  EXPECT_THAT(message_of<InputError>([&] {
                on_ranks(2, [&](const World& world) {
                  Model model(Layers(), world, split);
                  model.optimizer(settings);
                  model.load_state(folder);
                });
              }),
              ::testing::HasSubstr("holds no exp_avg of first.weight, which this run's optimizer needs"));
  std::filesystem::remove_all(folder);
}

TEST(ModuleStorage, TakesFewerBytes) {
  const auto bytes_of = [](const ShardOptions& options) {
    std::array<MemoryTracker, 2> trackers;  // outlive the blocks
    std::int64_t bytes = 0;
    on_ranks(2, [&](const World& world) {
      MemoryTracker& tracker = trackers[std::size_t(world.rank())];
      const TrackerScope booked(tracker);
      Model model(Layers(), world, options);
      model.optimizer(AdamWOptions());
      if (world.is_main()) bytes = tracker.live(MemoryCategory::optimizer);
    });
    return bytes;
  };
  const std::int64_t usual = bytes_of({.precision = bf16}),
                     with_rounded = bytes_of({.precision = bf16, .state_dtype = bf16}), with_split = bytes_of(split),
                     least = bytes_of(both);
  EXPECT_EQ(usual % 12, 0);  // a master and two moments
  EXPECT_EQ(with_rounded, usual / 12 * 8);
  EXPECT_EQ(with_split, usual / 12 * 10);
  EXPECT_EQ(least, usual / 2);
}

TEST(ModuleStorage, IsRefusedWhereNothingCanBeStoredSo) {
  const auto refusal = [](const ShardOptions& options, const OptimizerSettings& settings,
                          at::ScalarType type = torch::kFloat) {
    return message_of<InputError>([&] {
      on_ranks(2, [&](const World& world) {
        Layers net;
        net->to(type);
        Model model(net, world, options);
        model.optimizer(settings);
      });
    });
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal(rounded, AdafactorOptions()),
              HasSubstr("state_dtype = bf16: \"adafactor\" keeps no fp32 number of each element"));
  EXPECT_THAT(refusal(rounded, AdamW8bitOptions()), HasSubstr("\"adamw8bit\" keeps no"));
  EXPECT_THAT(refusal(rounded, SgdOptions{.momentum = 0, .nesterov = false}), HasSubstr("or give momentum"));
  EXPECT_THAT(refusal(rounded, AdamWOptions(), torch::kDouble), HasSubstr("these are of Double: leave it out"));
  EXPECT_THAT(refusal({.state_dtype = torch::kHalf}, AdamWOptions()), HasSubstr("zero::fp32 or zero::bf16"));
  EXPECT_THAT(refusal({.master_dtype = Masters::split}, AdamWOptions()),
              HasSubstr("those of Float are masters themselves: leave it out, or give precision = zero::bf16"));
  on_ranks(2, [](const World& world) {  // a group's optimizer keeps some
    Model model(Layers(), world, rounded);
    model.optimizer(AdafactorOptions{.groups = {{.match = {"*.bias"}, .optimizer = "adamw"}}});
    train(model, 0, 1);
  });
}

}  // namespace module_storage_test
}  // namespace zero::testing
