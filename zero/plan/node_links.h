#pragma once
// NodeLinks: the time of a collective over a group of ranks, and the bytes that each rank sends inside its node and to
// other nodes. A time is a latency plus the time to send a number of bytes at a bandwidth (Hockney 1994). A group that
// spans nodes takes the longer of its two parts.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

enum class CollectiveCall : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all, send };
inline constexpr int collective_calls = 5;

/// Ranks with numbers first, first + stride, first + 2 stride, ...
struct RankGroup {
  int size = 1, stride = 1;
};

/// The cost of one call, on each rank.
struct LinkCost {
  double seconds = 0, bytes_in_node = 0, bytes_between = 0;

  LinkCost& operator+=(const LinkCost& other);
  LinkCost operator*(double times) const;
};

/// Latency in seconds, and seconds per byte that a rank sends.
struct LinkLine {
  double latency = 0, per_byte = 0;

  double seconds(double bytes) const { return bytes > 0 ? latency + bytes * per_byte : 0; }
};

struct NodeLinks {
  int ranks_per_node = 1;
  std::array<LinkLine, collective_calls> in_node;  // by CollectiveCall
  LinkLine between;                                // per rank, while all ranks of its node use the network
  std::vector<std::string> sources;

  /// `bytes`: of the full vector of a gather or reduction; of a rank's own vector in all_to_all and send. A ring
  /// between nodes has a latency for each node, an all-reduce's trees for each level.
  LinkCost cost(CollectiveCall call, RankGroup group, double bytes) const;
};

}  // namespace zero
