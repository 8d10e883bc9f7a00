#include "comm/object_collectives.h"

#include <gmock/gmock.h>

#include "comm/sim/sim_world.h"

namespace zero {
namespace {

using ::testing::ElementsAre;

TEST(ObjectCollectives, BroadcastATextOfAnyLengthAndANumber) {
  SimWorld(3).run([](Communicator& group, int rank) {
    for (const std::string& words : {std::string(), std::string("a"), std::string(100000, 'x')})
      EXPECT_EQ(broadcast_text(group, rank == 1 ? words : "other", 1), words);
    EXPECT_EQ(broadcast_number(group, std::int64_t{-5} * rank, 2), -10);
  });
}

TEST(ObjectCollectives, GatherNumbersAndTextsByRank) {
  SimWorld(3).run([](Communicator& group, int rank) {
    EXPECT_THAT(all_gather_number(group, 10 - rank), ElementsAre(10, 9, 8));
    const std::vector<std::int64_t> mine{rank, std::int64_t{1} << (40 + rank)};
    EXPECT_THAT(all_gather_numbers(group, mine),
                ElementsAre(0, std::int64_t{1} << 40, 1, std::int64_t{1} << 41, 2, std::int64_t{1} << 42));
    EXPECT_THAT(all_gather_texts(group, std::string(std::size_t(rank), 'a')), ElementsAre("", "a", "aa"));
    EXPECT_THAT(all_gather_texts(group, ""), ElementsAre("", "", ""));
  });
}

}  // namespace
}  // namespace zero
