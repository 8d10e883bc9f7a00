#pragma once
// FlightRecorder: the last call of each rank, so that the one that is missing in a collective can be named although the
// backend itself does not know it. Ranks of a node write into memory that they share, which any thread reads; ranks of
// other nodes are asked once, after a failure.
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
  /// Ranks of `host` that share a node share its memory. Collective.
  explicit FlightRecorder(Communicator& host, FlightRecorderOptions options = {});
  ~FlightRecorder();

  /// This rank is about to issue the call.
  void record(const CallRecord& call);
  /// One more of its calls is done, in their order. By any thread.
  void complete();

  /// For people: the ranks of this node that have issued fewer calls than this one and what each issued last; where all
  /// have issued as many, those whose devices have done fewer; ranks of other nodes, where they cannot be asked, as not
  /// seen from here. Empty when there is nobody to name.
  std::string who_is_behind() const;

  /// The same of other nodes, whose ranks are asked, and the nodes from which no word came within `patience`. Empty
  /// without other nodes. By the thread that records, once; ranks that have not failed themselves do not answer, but
  /// those of their node tell of them.
  std::string ask_other_nodes(std::chrono::duration<double> patience) const;

 private:
  struct Record;
  struct Entry;
  Record& record_of(int local_rank) const;
  std::vector<Entry> entries_of_this_node() const;
  std::string lag_of(const Entry& entry) const;

  std::unique_ptr<FailureReports> reports_;
  std::vector<std::string> nodes_;                // by rank of `host`
  std::unique_ptr<class SharedSegment> segment_;  // null where shared memory cannot be had, or the node has one rank
  std::vector<int> local_ranks_;                  // their ranks in `host`, ascending
  int own_record_ = 0;
  std::atomic<std::uint64_t> issued_ = 0, done_ = 0;
  std::string last_call_;
};

/// The host name of each rank's node. Collective.
std::vector<std::string> node_names_of_ranks(Communicator& host);

/// Whether all names are one.
bool is_one_node(const std::vector<std::string>& nodes);

}  // namespace zero
