// Parts of products: every pair of values is there, and shares divide the cases.
#include "tests/sim/matrix.h"

#include <gtest/gtest.h>

#include <set>

namespace zero::testing {
namespace {

template <std::size_t A, std::size_t B, class... T>
std::size_t pairs_in(const std::vector<std::tuple<T...>>& combinations) {
  std::set<std::pair<int, int>> found;
  for (const auto& combination : combinations) found.emplace(std::get<A>(combination), std::get<B>(combination));
  return found.size();
}

TEST(PairsOf, HoldEveryPairOfValues) {
  if (whole_matrix()) GTEST_SKIP() << "ZERO_WHOLE_MATRIX is set";
  const std::vector<int> two{0, 1}, three{0, 1, 2}, four{0, 1, 2, 3}, five{0, 1, 2, 3, 4};
  const auto of_four = pairs_of(five, three, four, two);
  EXPECT_EQ(of_four.size(), 30u);
  EXPECT_EQ((pairs_in<0, 1>(of_four)), 15u);
  EXPECT_EQ((pairs_in<0, 2>(of_four)), 20u);
  EXPECT_EQ((pairs_in<0, 3>(of_four)), 10u);
  EXPECT_EQ((pairs_in<1, 2>(of_four)), 12u);
  EXPECT_EQ((pairs_in<1, 3>(of_four)), 6u);
  EXPECT_EQ((pairs_in<2, 3>(of_four)), 8u);
  const auto of_three = pairs_of(four, four, two);
  EXPECT_EQ(of_three.size(), 16u);
  EXPECT_EQ((pairs_in<0, 1>(of_three)), 16u);
  EXPECT_EQ((pairs_in<0, 2>(of_three)), 8u);
  EXPECT_EQ((pairs_in<1, 2>(of_three)), 8u);
}

TEST(Share, DividesTheCases) {
  if (whole_matrix()) GTEST_SKIP() << "ZERO_WHOLE_MATRIX is set";
  std::vector<int> taken(20, 0);
  for (int first = 0; first < 3; ++first) {
    Share share(3, first);
    for (int& times : taken) times += share.takes();
  }
  EXPECT_EQ(taken, std::vector<int>(20, 1));
}

}  // namespace
}  // namespace zero::testing
