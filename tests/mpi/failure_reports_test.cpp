// Failure reports as MPI messages: all ranks hear from all that send, and a silent rank delays nobody beyond the
// patience.
#include "comm/failure_reports.h"

#include <gtest/gtest.h>

#include <chrono>

#include "comm/flight_recorder.h"
#include "tests/mpi/mpi_world.h"

namespace zero {
namespace {

std::vector<int> others(const Job& job) {
  std::vector<int> ranks;
  for (int r = 0; r < job.size(); ++r)
    if (r != job.rank()) ranks.push_back(r);
  return ranks;
}

TEST(FailureReports, all_hear_from_all) {
  Job& job = mpi_world();
  const auto words = job.communicator().failures().make_reports();
  if (job.size() == 1) return;  // no other rank
  ASSERT_NE(words, nullptr);
  const std::vector<int> peers = others(job);
  const std::vector<std::string> told =
      words->exchange("rank " + std::to_string(job.rank()), peers, std::chrono::seconds(60));
  for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(told[i], "rank " + std::to_string(peers[i]));
}

TEST(FailureReports, a_silent_rank_is_not_waited_for) {
  Job& job = mpi_world();
  const auto words = job.communicator().failures().make_reports();
  const int silent = job.size() - 1;
  if (silent == 0) return;
  if (job.rank() != silent) {
    const std::vector<int> peers = others(job);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::string> told = words->exchange("here", peers, std::chrono::milliseconds(500));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(told[i], peers[i] == silent ? "" : "here");
  }
  job.communicator().barrier();
}

// The last rank lags and sends nothing; the others of its node report it. On one machine, halves of the job act as
// nodes.
TEST(FailureReports, the_flight_recorder_names_a_silent_rank_of_another_node) {
  Job& job = mpi_world();
  if (job.size() < 3) GTEST_SKIP() << "its node needs another rank";
  Communicator& host = job.communicator();
  FlightRecorderOptions options;
  options.nodes = node_names_of_ranks(host);
  if (is_one_node(options.nodes))
    for (int r = 0; r < job.size(); ++r) options.nodes[r] = r < job.size() / 2 ? "a" : "b";
  const std::string node = options.nodes.back();
  const bool same_node = options.nodes[job.rank()] == node;
  options.reports = host.failures().make_reports();
  FlightRecorder recorder(host, std::move(options));
  CallRecord call;
  call.kind = CollectiveKind::reduce_scatter;
  call.numel = 64;
  recorder.record(call);
  const int silent = job.size() - 1;
  call.kind = CollectiveKind::all_gather;
  if (job.rank() != silent) recorder.record(call);
  host.barrier();
  const std::string words =
      "rank " + std::to_string(silent) + " is missing, its last call was #0 reduce_scatter of 64 byte (other)";
  if (job.rank() != silent) {
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
