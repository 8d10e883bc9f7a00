#include "zero/plan/timings.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <vector>

namespace zero::test {
namespace {

/// Returns these seconds, one after the other.
std::function<double()> seconds_of(std::vector<double> seconds) {
  return [=, next = std::size_t{0}]() mutable { return seconds.at(next++); };
}

double no_guess() { throw std::logic_error("nothing is guessed"); }

TEST(Timings, ConfirmKeepsTheSmallerSecondsOnce) {
  Timings timings("");
  EXPECT_EQ(timings.get("disturbed", seconds_of({3, 2}), no_guess), 3);
  EXPECT_EQ(timings.get("quiet", seconds_of({1, 5}), no_guess), 1);
  EXPECT_TRUE(timings.confirm());
  EXPECT_EQ(timings.find("disturbed"), 2);
  EXPECT_EQ(timings.find("quiet"), 1);
  EXPECT_EQ(timings.measured(), 2);
  EXPECT_FALSE(timings.confirm());  // there are no third seconds
}

TEST(Timings, WithoutABudgetNothingIsMeasuredOrConfirmed) {
  Timings timings("");
  timings.set_budget(-1);
  EXPECT_EQ(timings.get("product", no_guess, [] { return 7.0; }), 7);
  EXPECT_FALSE(timings.confirm());
  EXPECT_EQ(timings.find("product"), 0);
}

TEST(Timings, NumbersOfAnEarlierCallAreNotMeasuredAgain) {
  Timings timings("");
  timings.put("product", 4);
  EXPECT_EQ(timings.get("product", no_guess, no_guess), 4);
  EXPECT_FALSE(timings.confirm());
}

}  // namespace
}  // namespace zero::test
