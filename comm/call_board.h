#pragma once
// CallBoard: what each rank of a node is doing, in memory that they share, so that the one that is missing in a collective can
// be named although the backend itself does not know it. Written by a rank's own thread, read by any thread of the others.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zero {

class CallBoard {
 public:
  /// Ranks of `host` that share a node share a board. Collective.
  explicit CallBoard(Communicator& host);
  ~CallBoard();

  /// This rank is about to issue the call.
  void publish(const CallRecord& call);

  /// For people: the ranks of this node that have issued fewer calls than this one and what each issued last; and the ranks of
  /// other nodes as not seen from here. Empty when nobody of this node is behind and there is no other node.
  std::string who_is_behind() const;

 private:
  struct Place;
  Place& place(int local_rank) const;

  std::unique_ptr<class SharedSegment> segment_;  // null where shared memory cannot be had, or the node has one rank
  std::vector<int> local_ranks_;                  // their ranks in `host`, ascending
  int own_place_ = 0;
  int ranks_ = 1;
  std::uint64_t issued_ = 0;
};

/// A number for each rank's node, equal on ranks that share one; by the nodes' lowest ranks. Collective.
std::vector<int> nodes_of_ranks(Communicator& host);

}  // namespace zero
