// Random numbers of processes: dropout differs between them where they are seeded by the world.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <optional>

#include "tests/mpi/mpi_world.h"
#include "zero/library/include/zero/deferred.h"
#include "zero/library/include/zero/sharded.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

struct DroppedImpl : torch::nn::Module {
  DroppedImpl() : linear(4, 24), dropout(0.5) {
    register_module("linear", linear);
    register_module("dropout", dropout);
  }
  torch::Tensor forward(const torch::Tensor& x) { return dropout(linear(x)); }
  torch::nn::Linear linear;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(Dropped);

struct Draws {
  std::int64_t masks = 0;  // that differ
  bool warns = false;
};

/// The draws of a step, or of a forward alone.
Draws draws_of(const World& world, bool trains, const std::function<void()>& seed, double rate = 0.5) {
  ::testing::internal::CaptureStderr();
  seed();
  Dropped net;
  net->dropout->options.p(rate);
  Sharded<Dropped> model(net, world);
  std::optional<ShardedOptimizer> optimizer;
  if (trains) optimizer = model.optimizer(AdamWOptions());
  const at::Tensor y = model(torch::ones({1, 4}));
  if (trains) model.backward(y.sum());
  const at::Tensor masks = world.gather_for_metrics((y != 0).to(at::kInt));
  const std::string said = ::testing::internal::GetCapturedStderr();
  return {std::get<0>(at::unique_dim(masks, 0)).size(0),
          said.find("the same masks in dropout: call world.manual_seed(seed)") != std::string::npos};
}

TEST(Draws, MasksDifferBetweenProcessesThatTheWorldSeeds) {
  const std::unique_ptr<Communicator> ranks = make_mpi_communicator(mpi_world_handle(), {});
  const World world = world_of(*ranks);
  const bool several = world.size() > 1;
  for (const bool trains : {false, true}) {
    const Draws alike = draws_of(world, trains, [] { torch::manual_seed(1); });
    EXPECT_EQ(alike.masks, 1);
    EXPECT_EQ(alike.warns, several && world.is_main());
    const Draws apart = draws_of(world, trains, [&] { world.manual_seed(1); });
    EXPECT_EQ(apart.masks, world.size());
    EXPECT_FALSE(apart.warns);
    EXPECT_FALSE(draws_of(
                     world, trains, [] { torch::manual_seed(1); }, 0)
                     .warns);
  }
}

TEST(Draws, TwoProcessesThatDrawAlikeAreEnoughForAWarning) {
  const std::unique_ptr<Communicator> ranks = make_mpi_communicator(mpi_world_handle(), {});
  const World world = world_of(*ranks);
  const Draws draws = draws_of(world, true, [&] { torch::manual_seed(world.is_main() ? 1 : 2); });
  EXPECT_EQ(draws.masks, std::min(world.size(), 2));
  EXPECT_EQ(draws.warns, world.size() > 2 && world.is_main());
}

TEST(Draws, OfADeferredModelAreThoseOfEveryProcess) {
  const std::unique_ptr<Communicator> ranks = make_mpi_communicator(mpi_world_handle(), {});
  const World world = world_of(*ranks);
  torch::manual_seed(1);
  Sharded<torch::nn::Linear> model(deferred([] { return torch::nn::Linear(4, 4); }), world);
  model.optimizer(AdamWOptions());
  const at::Tensor next = world.gather_for_metrics(torch::rand({1, 4}));
  EXPECT_EQ(std::get<0>(at::unique_dim(next, 0)).size(0), 1);
}

}  // namespace
}  // namespace zero
