// Last words by MPI's messages: all hear from all who speak, and a silent rank delays nobody beyond the patience.
#include "comm/last_words.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/mpi/mpi_world.h"

namespace zero {
namespace {

std::vector<int> others(const World& world) {
  std::vector<int> ranks;
  for (int r = 0; r < world.size(); ++r)
    if (r != world.rank()) ranks.push_back(r);
  return ranks;
}

TEST(LastWords, all_hear_from_all) {
  World& world = mpi_world();
  const auto words = world.communicator().last_words();
  ASSERT_NE(words, nullptr);
  const std::vector<int> peers = others(world);
  const std::vector<std::string> told = words->exchange("rank " + std::to_string(world.rank()), peers, std::chrono::seconds(60));
  for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(told[i], "rank " + std::to_string(peers[i]));
}

TEST(LastWords, a_silent_rank_is_not_waited_for) {
  World& world = mpi_world();
  const auto words = world.communicator().last_words();
  const int silent = world.size() - 1;
  if (world.rank() != silent) {
    const std::vector<int> peers = others(world);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::string> told = words->exchange("here", peers, std::chrono::milliseconds(500));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(told[i], peers[i] == silent ? "" : "here");
  }
  world.communicator().barrier();
}

}  // namespace
}  // namespace zero
