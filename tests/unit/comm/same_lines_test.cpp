#include "comm/agreement/same_lines.h"

#include <gtest/gtest.h>

#include "comm/sim/sim_world.h"

namespace zero {
namespace {

TEST(SameLines, NameTheFirstDifferenceOnAllRanks) {
  SimWorld(3).run([](Communicator& group, int rank) {
    EXPECT_FALSE(difference_of_lines(group, "one\ntwo\n"));
    const auto other = difference_of_lines(group, rank == 2 ? "one\n2\nthree\n" : "one\ntwo\n");
    ASSERT_TRUE(other);
    EXPECT_EQ(other->rank, 2);
    EXPECT_EQ(other->first, "two");
    EXPECT_EQ(other->other, "2");
    const auto less = difference_of_lines(group, rank == 1 ? "one\n" : "one\ntwo\n");
    ASSERT_TRUE(less);
    EXPECT_EQ(less->rank, 1);
    EXPECT_EQ(less->other, "nothing more");
    EXPECT_TRUE(difference_of_lines(group, rank == 1 ? "one" : "one\n"));
  });
}

}  // namespace
}  // namespace zero
