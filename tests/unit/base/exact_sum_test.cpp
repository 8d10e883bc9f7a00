#include "base/numbers/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace zero {
namespace {

constexpr double largest = std::numeric_limits<double>::max(), smallest = std::numeric_limits<double>::denorm_min(),
                 infinity = std::numeric_limits<double>::infinity();

ExactSum sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (double x : numbers) sum.add(x);
  return sum;
}

/// Numbers of all magnitudes and both signs.
std::vector<double> wild_numbers(int count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<double> numbers;
  while (int(numbers.size()) < count) {
    const double x = std::ldexp(double(random() >> 11), int(random() % 2040) - 1100);
    if (std::isfinite(x)) numbers.push_back(random() % 2 ? x : -x);
  }
  return numbers;
}

TEST(ExactSum, HasEveryNumberAlone) {
  for (double x :
       {0.0, 1.0, -1.0, 0.1, -3.75e300, largest, -largest, smallest, -smallest, 2.2250738585072014e-308, 1e-310})
    EXPECT_EQ(sum_of({x}).value(), x) << x;
  for (double x : wild_numbers(2000, 1)) EXPECT_EQ(sum_of({x}).value(), x);
}

TEST(ExactSum, KeepsWhatFloatingPointLoses) {
  EXPECT_EQ(sum_of({1e300, 1.0, -1e300}).value(), 1.0);
  EXPECT_EQ(sum_of({largest, largest, smallest, -largest, -largest}).value(), smallest);
  EXPECT_EQ(sum_of({0.1, 0.2, -0.3}).value(), std::ldexp(1.0, -55));  // of the three fp64 numbers
  std::vector<double> numbers = wild_numbers(500, 2), both = numbers;
  for (double x : numbers) both.push_back(-x);
  both.push_back(-0.5);
  EXPECT_EQ(sum_of(both).value(), -0.5);
}

TEST(ExactSum, DependsOnNeitherOrderNorGrouping) {
  std::vector<double> numbers = wild_numbers(3000, 3);
  const ExactSum all = sum_of(numbers);
  std::mt19937_64 random(4);
  for (int times = 0; times < 5; ++times) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    ExactSum first, second;
    ExactSum::Parts added{};
    for (std::size_t i = 0; i < numbers.size(); ++i) (i % 3 ? first : second).add(numbers[i]);
    for (std::size_t i = 0; i < added.size(); ++i) added[i] = first.parts()[i] + second.parts()[i];
    EXPECT_EQ(ExactSum::of(added).value(), all.value());
    EXPECT_EQ(ExactSum::of(added).parts(), all.parts());
    first.add(second);
    EXPECT_EQ(first.parts(), all.parts());
  }
}

TEST(ExactSum, PropagatesNanAndInfinity) {
  EXPECT_EQ(sum_of({1, infinity, -1e308}).value(), infinity);
  EXPECT_EQ(sum_of({1, -infinity}).value(), -infinity);
  EXPECT_TRUE(std::isnan(sum_of({infinity, -infinity}).value()));
  EXPECT_TRUE(std::isnan(sum_of({1, std::nan("")}).value()));
  EXPECT_EQ(ExactSum::of(sum_of({infinity}).parts()).value(), infinity);
  EXPECT_EQ(ExactSum().value(), 0.0);
}

TEST(ExactSum, CarriesWhenDigitsAreFull) {
  ExactSum sum, doubled;
  sum.add(std::ldexp(1.0, 31) * 1.999999);
  for (int times = 0; times < 60; ++times) {  // 2^60 of them
    doubled = sum;
    sum.add(doubled);
  }
  EXPECT_EQ(sum.value(), std::ldexp(std::ldexp(1.0, 31) * 1.999999, 60));
}

}  // namespace
}  // namespace zero
