#include "zero/plan/node_links.h"

#include <algorithm>
#include <cmath>

namespace zero {

LinkCost& LinkCost::operator+=(const LinkCost& other) {
  seconds += other.seconds;
  bytes_in_node += other.bytes_in_node;
  bytes_between += other.bytes_between;
  return *this;
}

LinkCost LinkCost::operator*(double times) const {
  return {seconds * times, bytes_in_node * times, bytes_between * times};
}

LinkCost NodeLinks::cost(CollectiveCall call, RankGroup group, double bytes) const {
  LinkCost cost;
  if (group.size <= 1 || bytes <= 0) return cost;
  const double n = group.size;
  const double here = std::min(n, std::max(1.0, double(ranks_per_node / group.stride)));  // of the group, in a node
  const double nodes = std::ceil(n / here);
  const double times = call == CollectiveCall::all_reduce ? 2 : 1;
  if (call == CollectiveCall::send) {
    (here > 1 ? cost.bytes_in_node : cost.bytes_between) = bytes;
  } else if (call == CollectiveCall::all_to_all) {
    cost.bytes_in_node = bytes * (here - 1) / n;
    cost.bytes_between = bytes * (n - here) / n;
  } else {
    cost.bytes_in_node = times * bytes * (here - 1) / here;
    cost.bytes_between = times * bytes * (nodes - 1) / nodes / here;
  }
  const double steps = call == CollectiveCall::all_reduce ? 2 * std::log2(std::max(2.0, nodes)) : nodes - 1;
  const double inside = in_node[std::size_t(call)].seconds(cost.bytes_in_node);
  const double outside =
      cost.bytes_between > 0 ? between.latency * std::max(1.0, steps) + cost.bytes_between * between.per_byte : 0;
  cost.seconds = std::max(inside, outside);
  return cost;
}

}  // namespace zero
