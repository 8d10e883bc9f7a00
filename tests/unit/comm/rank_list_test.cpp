#include "comm/agreement/rank_list.h"

#include <gtest/gtest.h>

namespace zero {
namespace {

TEST(RankList, NamesTheFirstOfMany) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 2}), "ranks 0, 2");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 4, 5, 6, 7}), "ranks 0, 1, 2, 3, 4, 5, 6, 7");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 4, 5, 6, 7, 8}), "ranks 0, 1, 2, 3, 4, 5, 6, 7, ...");
}

}  // namespace
}  // namespace zero
