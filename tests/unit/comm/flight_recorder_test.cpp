// The flight recorder between nodes, with a mailbox in place of the network.
#include "comm/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "comm/sim/sim_world.h"

namespace zero {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Mailbox {
  std::mutex lock;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::string> letters;  // (from, to)
};

class MailedReports final : public FailureReports {
 public:
  MailedReports(Mailbox& box, int rank) : box_(box), rank_(rank) {}
  std::vector<std::string> exchange(const std::string& mine, const std::vector<int>& peers,
                                    std::chrono::duration<double> patience) override {
    std::unique_lock guard(box_.lock);
    for (int peer : peers) box_.letters[{rank_, peer}] = mine;
    box_.changed.notify_all();
    const auto all_here = [&] {
      return std::all_of(peers.begin(), peers.end(), [&](int peer) { return box_.letters.contains({peer, rank_}); });
    };
    box_.changed.wait_for(guard, patience, all_here);
    std::vector<std::string> told;
    for (int peer : peers) told.push_back(box_.letters[{peer, rank_}]);
    return told;
  }

 private:
  Mailbox& box_;
  int rank_;
};

/// Four ranks on nodes a and b, two each. All issue one call, and all but `missing` a second one; then all but `silent`
/// ask. Returns what rank 0 learns.
std::string learned(const std::vector<int>& missing, const std::vector<int>& silent) {
  Mailbox box;
  std::string answer;
  const auto in = [](const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  SimWorld({.ranks = 4}).run([&](Communicator& c, int rank) {
    FlightRecorderOptions options;
    options.reports = std::make_unique<MailedReports>(box, rank);
    options.nodes = {"a", "a", "b", "b"};
    FlightRecorder recorder(c, std::move(options));
    CallRecord call;
    call.kind = CollectiveKind::reduce_scatter;
    call.numel = 64;
    recorder.record(call);
    c.barrier();
    call.kind = CollectiveKind::all_gather;
    if (!in(missing, rank)) recorder.record(call);
    c.barrier();
    EXPECT_THAT(recorder.who_is_behind(), Not(HasSubstr("other nodes"))) << "they can be asked";
    if (!in(silent, rank)) {
      const std::string found = recorder.ask_other_nodes(std::chrono::milliseconds(silent.empty() ? 20000 : 300));
      if (rank == 0) answer = found;
    }
  });
  return answer;
}

TEST(FlightRecorderBetweenNodes, a_missing_rank_that_is_silent_is_named_by_the_ranks_of_its_node) {
  EXPECT_EQ(learned({3}, {3}), "rank 3 on node b is missing, its last call was #0 reduce_scatter of 64 byte (other)");
}

TEST(FlightRecorderBetweenNodes, a_missing_rank_that_answers_is_named_too) {
  EXPECT_EQ(learned({2}, {}), "rank 2 on node b is missing, its last call was #0 reduce_scatter of 64 byte (other)");
}

TEST(FlightRecorderBetweenNodes, a_silent_node_is_named) {
  EXPECT_EQ(learned({}, {2, 3}), "no answer from node b (ranks 2, 3) within 0.3 s");
}

TEST(FlightRecorderBetweenNodes, nobody_is_named_who_is_not_behind) { EXPECT_EQ(learned({}, {}), ""); }

TEST(FlightRecorderBetweenNodes, a_rank_that_never_called_is_named) {
  Mailbox box;
  SimWorld({.ranks = 2}).run([&](Communicator& c, int rank) {
    FlightRecorderOptions options;
    options.reports = std::make_unique<MailedReports>(box, rank);
    options.nodes = {"a", "b"};
    FlightRecorder recorder(c, std::move(options));
    if (rank == 0) recorder.record({});
    const std::string found = recorder.ask_other_nodes(std::chrono::seconds(20));
    EXPECT_EQ(found, rank == 0 ? "rank 1 on node b is missing, its last call was none" : "");
  });
}

TEST(FlightRecorder, a_device_that_hangs_is_named_though_its_host_has_issued_all) {
  SimWorld({.ranks = 3}).run([&](Communicator& c, int rank) {
    FlightRecorder recorder(c, {nullptr, {"a", "a", "a"}});
    for (int i = 0; i < 3; ++i) recorder.record({});
    for (int i = 0; i < (rank == 1 ? 0 : 2); ++i) recorder.complete();
    c.barrier();
    EXPECT_EQ(recorder.who_is_behind(), rank == 1 ? "" : "rank 1 has issued it, but its device is 2 calls behind");
    c.barrier();
  });
}

}  // namespace
}  // namespace zero
