#include "base/core_share.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace zero {
namespace {

CoreSet cores(int first, int count) {
  CoreSet set;
  for (int i = 0; i < count; ++i) set.set(first + i);
  return set;
}

TEST(CoreShare, UnboundRanksDivideTheNode) {
  const std::vector<CoreSet> four(4, cores(0, 16)), three(3, cores(0, 3));
  for (int r = 0; r < 4; ++r) EXPECT_EQ(core_share(four, r), 4);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(core_share(three, r), 1);
}

TEST(CoreShare, BoundRanksKeepTheirCores) {
  const std::vector<CoreSet> ranks{cores(0, 8), cores(8, 8), cores(16, 2)};
  EXPECT_EQ(core_share(ranks, 0), 8);
  EXPECT_EQ(core_share(ranks, 1), 8);
  EXPECT_EQ(core_share(ranks, 2), 2);
}

TEST(CoreShare, OnlyRanksOfTheSameSocketDivideIt) {
  const std::vector<CoreSet> ranks{cores(0, 32), cores(0, 32), cores(0, 32), cores(32, 32)};
  EXPECT_EQ(core_share(ranks, 0), 10);
  EXPECT_EQ(core_share(ranks, 3), 32);
}

TEST(CoreShare, IsNeverLessThanOne) {
  EXPECT_EQ(core_share(std::vector<CoreSet>(5, cores(7, 2)), 4), 1);
  EXPECT_EQ(core_share({CoreSet()}, 0), 1);
}

TEST(CoreShare, OwnCoresAreTheAffinityOfTheThread) {
  const CoreSet all = own_cores();
  ASSERT_GE(all.count(), 1u);
  int last = int(all.size()) - 1;
  while (!all[last]) --last;
  std::thread([last] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(own_cores(), cores(last, 1));
  }).join();
  EXPECT_EQ(own_cores(), all);
}

}  // namespace
}  // namespace zero
