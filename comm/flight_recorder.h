#pragma once
// FlightRecorder: the last call of each rank, to name the rank that is missing in a collective if the backend cannot.
// Ranks of a node write into memory that they share and that any thread reads. Ranks of other nodes are asked once,
// after a failure.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zero {

struct FlightRecorderOptions {
  std::unique_ptr<FailureReports> reports;  // to the ranks of other nodes; null: they cannot be asked
  std::vector<std::string> nodes;           // the name of each rank's node; empty: the host names
};

class FlightRecorder {
 public:
  /// Ranks of `host` on one node share memory. Collective.
  explicit FlightRecorder(Communicator& host, FlightRecorderOptions options = {});
  ~FlightRecorder();

  /// Records the call that this rank is about to issue.
  void record(const CallRecord& call);
  /// Counts one more finished call, in their order. Any thread may call it.
  void complete();

  /// Text about the ranks of this node that have issued fewer calls than this one, with the last call of each. If all
  /// have issued as many, it names those whose devices have finished fewer. It names ranks of other nodes as not
  /// visible from here, if they cannot be asked. Empty if there is nobody to name.
  std::string who_is_behind() const;

  /// Asks the ranks of other nodes and returns the same text about them, and about nodes that did not answer within
  /// `patience`. Empty without other nodes. The recording thread calls it, once. Ranks that have not failed do not
  /// answer, but other ranks of their node report them.
  std::string ask_other_nodes(std::chrono::duration<double> patience) const;

 private:
  struct Record;
  struct Entry;
  Record& record_of(int local_rank) const;
  std::vector<Entry> entries_of_this_node() const;
  std::string lag_of(const Entry& entry) const;

  std::unique_ptr<FailureReports> reports_;
  std::vector<std::string> nodes_;                // by rank of `host`
  std::unique_ptr<class SharedSegment> segment_;  // null without shared memory, or if the node has one rank
  std::vector<int> local_ranks_;                  // their ranks in `host`, ascending
  int own_record_ = 0;
  std::atomic<std::uint64_t> issued_ = 0, done_ = 0;
  std::string last_call_;
};

/// The host name of each rank's node. Collective.
std::vector<std::string> node_names_of_ranks(Communicator& host);

/// True if all names are equal.
bool is_one_node(const std::vector<std::string>& nodes);

}  // namespace zero
