#include "zero/plan/node_links.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

NodeLinks eight_a_node() {
  NodeLinks links;
  links.ranks_per_node = 8;
  links.in_node.fill({1e-5, 1e-11});  // 100 GB/s
  links.between = {1e-4, 1e-10};      // 10 GB/s
  return links;
}

TEST(NodeLinks, OneRankSendsNothing) {
  const LinkCost cost = eight_a_node().cost(CollectiveCall::all_reduce, {1, 1}, 1e9);
  EXPECT_EQ(cost.seconds, 0);
  EXPECT_EQ(cost.bytes_in_node + cost.bytes_between, 0);
}

TEST(NodeLinks, RingBytesInsideANode) {
  const NodeLinks links = eight_a_node();
  const LinkCost gather = links.cost(CollectiveCall::all_gather, {8, 1}, 8e9);
  EXPECT_DOUBLE_EQ(gather.bytes_in_node, 7e9);
  EXPECT_EQ(gather.bytes_between, 0);
  EXPECT_DOUBLE_EQ(gather.seconds, 1e-5 + 0.07);
  const LinkCost sum = links.cost(CollectiveCall::all_reduce, {8, 1}, 8e9);
  EXPECT_DOUBLE_EQ(sum.bytes_in_node, 14e9);
}

TEST(NodeLinks, GroupsThatSpanNodesShareTheNetwork) {
  const NodeLinks links = eight_a_node();
  // All ranks of two nodes: each sends an eighth of the half that the other node lacks.
  EXPECT_DOUBLE_EQ(links.cost(CollectiveCall::all_gather, {16, 1}, 16e9).bytes_between, 1e9);
  // The same rank of each of two nodes: nothing inside, half of the vector outside.
  const LinkCost across = links.cost(CollectiveCall::all_gather, {2, 8}, 2e9);
  EXPECT_EQ(across.bytes_in_node, 0);
  EXPECT_DOUBLE_EQ(across.bytes_between, 1e9);
  EXPECT_DOUBLE_EQ(across.seconds, 1e-4 + 0.1);
}

TEST(NodeLinks, AStrideHalvesTheRanksOfANode) {
  const LinkCost cost = eight_a_node().cost(CollectiveCall::reduce_scatter, {8, 2}, 8e9);  // four in each of two nodes
  EXPECT_DOUBLE_EQ(cost.bytes_in_node, 6e9);
  EXPECT_DOUBLE_EQ(cost.bytes_between, 1e9);
}

}  // namespace
}  // namespace zero
