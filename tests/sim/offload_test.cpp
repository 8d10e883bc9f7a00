// States that live on disk or in a host store give the same bits as states in memory, at every stage.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "tests/sim/offload_homes.h"
#include "tests/sim/training_run.h"

namespace zero::testing {
namespace {

// stage, ranks, home, type of computing, and whether gradients and weights pass through buffers of the host, as on a
// GPU. One rank alone shards nothing unless its weights live elsewhere.
class Offload : public ::testing::TestWithParam<std::tuple<int, int, Home, at::ScalarType, bool>> {};

TEST_P(Offload, EqualsResidentStatesBitForBit) {
  const auto [stage, ranks, home, compute, through_host] = GetParam();
  const std::string folder =
      ::testing::TempDir() + "/offload_" + std::to_string(::getpid()) + "_" + std::to_string(stage);
  RunOptions options;
  options.config = small_config(true);
  options.stage = stage;
  options.ranks = ranks;
  options.steps = 4;
  options.compute = compute;
  options.master = at::kFloat;
  options.micro_batches = 2;
  const RunResult resident = run_training(options);
  options.policy_of = [&, home = home, through_host = through_host](int rank) {
    return policy_at(home, folder, rank, through_host);
  };
  const RunResult elsewhere = run_training(options);
  EXPECT_EQ(resident.losses, elsewhere.losses);
  EXPECT_EQ(resident.norms, elsewhere.norms);
  ASSERT_EQ(resident.weights.size(), elsewhere.weights.size());
  for (const auto& [name, weight] : resident.weights)
    EXPECT_TRUE(at::equal(weight, elsewhere.weights.at(name))) << name;
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Stages, Offload,
                         ::testing::Combine(::testing::Range(0, 4), ::testing::Values(1, 3),
                                            ::testing::Values(Home::host, Home::disk),
                                            ::testing::Values(at::kFloat, at::kBFloat16), ::testing::Bool()));

}  // namespace
}  // namespace zero::testing
