// Failure reports by MPI's messages: all hear from all who speak, and a silent rank delays nobody beyond the patience.
#include "comm/failure_reports.h"

#include <gtest/gtest.h>

#include <chrono>

#include "comm/flight_recorder.h"
#include "tests/mpi/mpi_world.h"

namespace zero {
namespace {

std::vector<int> others(const World& world) {
  std::vector<int> ranks;
  for (int r = 0; r < world.size(); ++r)
    if (r != world.rank()) ranks.push_back(r);
  return ranks;
}

TEST(FailureReports, all_hear_from_all) {
  World& world = mpi_world();
  const auto words = world.communicator().failures().make_reports();
  if (world.size() == 1) return;  // nobody to tell
  ASSERT_NE(words, nullptr);
  const std::vector<int> peers = others(world);
  const std::vector<std::string> told =
      words->exchange("rank " + std::to_string(world.rank()), peers, std::chrono::seconds(60));
  for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(told[i], "rank " + std::to_string(peers[i]));
}

TEST(FailureReports, a_silent_rank_is_not_waited_for) {
  World& world = mpi_world();
  const auto words = world.communicator().failures().make_reports();
  const int silent = world.size() - 1;
  if (silent == 0) return;
  if (world.rank() != silent) {
    const std::vector<int> peers = others(world);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::string> told = words->exchange("here", peers, std::chrono::milliseconds(500));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(told[i], peers[i] == silent ? "" : "here");
  }
  world.communicator().barrier();
}

// The last rank is behind and says nothing; the others of its node tell of it. On one machine the halves of the job
// pretend to be nodes.
TEST(FailureReports, the_flight_recorder_names_a_silent_rank_of_another_node) {
  World& world = mpi_world();
  if (world.size() < 3) GTEST_SKIP() << "its node needs another rank";
  Communicator& host = world.communicator();
  FlightRecorderOptions options;
  options.nodes = node_names_of_ranks(host);
  if (is_one_node(options.nodes))
    for (int r = 0; r < world.size(); ++r) options.nodes[r] = r < world.size() / 2 ? "a" : "b";
  const std::string node = options.nodes.back();
  const bool same_node = options.nodes[world.rank()] == node;
  options.reports = host.failures().make_reports();
  FlightRecorder recorder(host, std::move(options));
  CallRecord call;
  call.kind = CollectiveKind::reduce_scatter;
  call.numel = 64;
  recorder.record(call);
  const int silent = world.size() - 1;
  call.kind = CollectiveKind::all_gather;
  if (world.rank() != silent) recorder.record(call);
  host.barrier();
  const std::string words =
      "rank " + std::to_string(silent) + " is missing, its last call was #0 reduce_scatter of 64 byte (other)";
  if (world.rank() != silent) {
    EXPECT_EQ(recorder.who_is_behind(), same_node ? words : "");
    const std::string elsewhere = recorder.ask_other_nodes(std::chrono::seconds(2));
    EXPECT_EQ(elsewhere, same_node ? ""
                                   : "rank " + std::to_string(silent) + " on node " + node +
                                         words.substr(words.find(" is missing")));
  }
  host.barrier();
}

}  // namespace
}  // namespace zero
