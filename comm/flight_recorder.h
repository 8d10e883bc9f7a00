#pragma once
// FlightRecorder: records each rank's last call. It names the rank that is missing in a collective if the backend
// cannot. Ranks of one node write to shared memory, which any thread can read. After a failure, ranks of other nodes
// are asked once.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zero {

struct FlightRecorderOptions {
  std::unique_ptr<FailureReports> reports;  // to ranks of other nodes; if null, those cannot be asked
  std::vector<std::string> nodes;           // each rank's node name; if empty, the host names
};

class FlightRecorder {
 public:
  /// Sets up the memory that ranks of `host` on one node share. Collective.
  explicit FlightRecorder(Communicator& host, FlightRecorderOptions options = {});
  ~FlightRecorder();

  /// Records the call that this rank is about to issue.
  void record(const CallRecord& call);
  /// Counts one more finished call; calls finish in the order issued. Any thread may call this.
  void complete();

  /// Describes the ranks of this node that have issued fewer calls than this rank, with the last call of each. If all
  /// have issued equally many, describes those whose devices have finished fewer. If ranks of other nodes cannot be
  /// asked, lists them as not visible from here. Returns an empty text if there is no rank to name.
  std::string who_is_behind() const;

  /// Asks the ranks of other nodes and describes those that are behind, and nodes that did not answer within
  /// `patience`. Returns an empty text if there is only one node. Call it once, on the recording thread. Ranks that
  /// have not failed do not answer, but other ranks of their node report them.
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
  std::vector<int> local_ranks_;                  // this node's ranks in `host`, ascending
  int own_record_ = 0;
  std::atomic<std::uint64_t> issued_ = 0, done_ = 0;
  std::string last_call_;
};

/// The host name of each rank's node. Collective.
std::vector<std::string> node_names_of_ranks(Communicator& host);

/// True if all names are equal.
bool is_one_node(const std::vector<std::string>& nodes);

}  // namespace zero
