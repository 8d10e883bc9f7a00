#include "base/random.h"

#include <gtest/gtest.h>

#include <array>

namespace zero {
namespace {

// The first numbers of the authors' program (prng.di.unimi.it/splitmix64.c) from the state 1234567.
constexpr std::array<std::uint64_t, 3> published = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u};

TEST(SplitMix64, GivesTheNumbersOfItsAuthors) {
  SplitMix64 random(1234567);
  for (std::size_t i = 0; i < published.size(); ++i) {
    EXPECT_EQ(random.next(), published[i]);
    EXPECT_EQ(mix_seed(1234567, i), published[i]);
  }
  EXPECT_EQ(splitmix64(1234567), published[0]);
}

TEST(SplitMix64, BelowABoundTakesEveryValueAboutAsOften) {
  SplitMix64 random(1);
  std::array<int, 7> count{};
  for (int i = 0; i < 70000; ++i) ++count.at(random.below(count.size()));
  for (const int n : count) EXPECT_NEAR(n, 10000, 500);  // five standard deviations
}

}  // namespace
}  // namespace zero
