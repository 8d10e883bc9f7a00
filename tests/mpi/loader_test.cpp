// Tests of loaders that need processes with a random generator each.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/data/datasets.h>
#include <torch/data/samplers.h>
#include <torch/utils.h>

#include "tests/mpi/mpi_world.h"
#include "zero/library/include/zero/loader.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

constexpr std::int64_t samples = 16;

/// The numbers of one epoch in the order in which all processes together have them.
at::Tensor epoch_of(const World& world) {
  const at::Tensor numbers = at::arange(samples);
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      torch::data::datasets::TensorDataset(numbers), 6);
  std::vector<at::Tensor> rows;
  for (auto& batch : shard(loader, world)) {
    std::vector<at::Tensor> own{at::empty({0}, at::kLong)};
    for (const auto& sample : batch) own.push_back(sample.data.view({1}));
    rows.push_back(world.gather_for_metrics(at::cat(own)));
  }
  return at::cat(rows);
}

TEST(ShardedLoader, TorchsRandomSamplerGivesEachSampleOnceOnProcessesOfDifferentSeeds) {
  const World world = world_of(mpi_world().communicator());
  torch::manual_seed(5);
  auto sampler = torch::data::samplers::RandomSampler(samples);  // draws as it is made, and as an epoch begins
  sampler.reset();
  const auto alone = sampler.next(samples);
  torch::manual_seed(std::uint64_t(5 + world.rank()));
  const at::Tensor first = epoch_of(world);
  EXPECT_TRUE(first.equal(at::tensor(std::vector<std::int64_t>(alone->begin(), alone->end()))));  // the main process's
  const at::Tensor second = epoch_of(world);
  EXPECT_TRUE(std::get<0>(second.sort()).equal(at::arange(samples)));
  EXPECT_FALSE(second.equal(first));
}

/// Samples that a draw changes, as an augmentation does.
class Drawn : public torch::data::datasets::Dataset<Drawn, torch::data::TensorExample> {
 public:
  torch::data::TensorExample get(std::size_t index) override {
    return at::scalar_tensor(double(index), at::kDouble) + at::rand({}, at::kDouble) / 2;
  }
  std::optional<std::size_t> size() const override { return samples; }
};

/// This process's part of two epochs, and its own draws after each batch. Saves into `states` before batch `stop`, or
/// continues from them.
struct Loop {
  std::vector<double> seen;
  NamedTensors loader;
  at::Tensor generator;

  void run(const World& world, int stop) {
    auto batches = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(Drawn(), 6);
    auto sharded = shard(batches, world);
    if (!loader.empty()) {
      sharded.load_state(loader);
      at::Generator draws = at::detail::getDefaultCPUGenerator();
      draws.set_state(generator);
    }
    while (sharded.epoch() < 2)
      for (auto& batch : sharded) {
        for (const auto& sample : batch) seen.push_back(sample.data.item<double>());
        seen.push_back(at::rand({}, at::kDouble).item<double>());
        if (--stop > 0) continue;
        loader = sharded.state();
        generator = at::detail::getDefaultCPUGenerator().get_state();
        if (stop == 0) return;
      }
  }
};

// LibTorch's RandomSampler draws its order from the global generator, which the samples draw from too.
TEST(ShardedLoader, GoesOnWhereItStoodWithTheSameOrderAndDraws) {
  const World world = world_of(mpi_world().communicator());
  for (int stop = 1; stop <= 3; ++stop) {
    torch::manual_seed(std::uint64_t(5 + world.rank()));
    Loop undisturbed, stopped;
    undisturbed.run(world, 0);
    torch::manual_seed(std::uint64_t(5 + world.rank()));
    stopped.run(world, stop);
    torch::manual_seed(99);
    stopped.run(world, 0);
    EXPECT_EQ(stopped.seen, undisturbed.seen) << "stopped after batch " << stop;
  }
}

TEST(ShardedLoader, EveryProcessKeepsItsOwnRandomNumbers) {
  const World world = world_of(mpi_world().communicator());
  torch::manual_seed(std::uint64_t(world.rank()));
  at::randperm(samples);  // a sampler draws this as it is made
  const at::Tensor expected = at::rand({4});
  torch::manual_seed(std::uint64_t(world.rank()));
  epoch_of(world);
  if (!world.is_main()) EXPECT_TRUE(at::rand({4}).equal(expected));
  torch::manual_seed(1);  // processes with equal states stay equal
  epoch_of(world);
  const at::Tensor mine = at::rand({4});
  EXPECT_TRUE(world.broadcast(mine).equal(mine));
}

TEST(ShardedLoader, EveryProcessKeepsItsOwnRandomNumbersWhereASamplerFails) {
  const World world = world_of(mpi_world().communicator());
  torch::manual_seed(std::uint64_t(world.rank()));
  const at::Tensor expected = at::rand({4});
  torch::manual_seed(std::uint64_t(world.rank()));
  EXPECT_THROW(detail::draw_as_main(world, [] { throw std::runtime_error("no order"); }), std::runtime_error);
  EXPECT_TRUE(at::rand({4}).equal(expected));
}

}  // namespace
}  // namespace zero
