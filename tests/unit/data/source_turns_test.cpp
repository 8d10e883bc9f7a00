// Sources that take turns by their weights: each has its share, rounded down or up, after any number of rows.
#include "zero/data/rows/source_turns.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

namespace zero {
namespace source_turns_test {

using ::testing::ElementsAre;

TEST(WholeShares, AreExactForRatiosOfWholeNumbers) {
  EXPECT_THAT(whole_shares({1}), ElementsAre(1));
  EXPECT_THAT(whole_shares({0.7, 0.3}), ElementsAre(7, 3));
  EXPECT_THAT(whole_shares({2, 4, 6}), ElementsAre(1, 2, 3));
  EXPECT_THAT(whole_shares({0.1, 0.2, 0.3, 0.4}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(whole_shares({1e12, 1e12}), ElementsAre(1, 1));
  EXPECT_THAT(whole_shares({999'999, 1}), ElementsAre(999'999, 1));
}

TEST(WholeShares, AreRoundedToMillionthsOtherwise) {
  const std::vector<double> weights{std::sqrt(2), std::exp(1), 3.14159265, 1e-5, 11.0 / 7};
  const std::vector<std::int64_t> shares = whole_shares(weights);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0),
               total = double(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}));
  EXPECT_NEAR(total, 1e6, 5);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(double(shares[i]) / total, weights[i] / sum, 1e-6);
}

/// After each of the first `rows` rows, every source has given its share, rounded down or up.
void expect_quota(const std::vector<double>& weights, std::int64_t rows) {
  const SourceTurns turns(weights);
  std::vector<std::int64_t> given(weights.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const Turn turn = turns.at(row);
    ASSERT_EQ(turn.place, given[turn.source]++) << "row " << row;
    for (std::size_t source = 0; source < weights.size(); ++source) {
      const double due = turns.share(source) * double(row + 1);
      ASSERT_GE(double(given[source]), std::floor(due + 1e-9)) << "source " << source << " of row " << row;
      ASSERT_LE(double(given[source]), std::ceil(due - 1e-9)) << "source " << source << " of row " << row;
    }
  }
  for (std::size_t source = 0; source < weights.size(); ++source) EXPECT_EQ(turns.given(source, rows), given[source]);
}

TEST(SourceTurns, GiveEachSourceItsShareWithinARow) {
  for (const std::vector<double>& weights : {std::vector<double>{1},
                                             {1, 1},
                                             {0.7, 0.3},
                                             {5, 3, 1, 1},
                                             {1, 1, 1, 1, 1, 1, 1, 93},
                                             {0.5, 0.25, 0.125, 0.125},
                                             {std::sqrt(2), std::exp(1), 3.14159265, 0.01},
                                             {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}})
    expect_quota(weights, 3000);
}

TEST(SourceTurns, GoOnBeyondTheirPeriod) {
  const SourceTurns turns({7, 3});
  const std::int64_t far = 10 * std::int64_t{1'000'000'000'000};
  EXPECT_EQ(turns.given(1, far), 3 * std::int64_t{1'000'000'000'000});
  EXPECT_EQ(turns.at(far + 3).source, turns.at(3).source);
  EXPECT_EQ(turns.at(far).place, turns.given(turns.at(far).source, far));
}

TEST(SourceTurns, DependOnTheRatioOfTheWeightsAlone) {
  const SourceTurns one({0.2, 0.8}), other({20, 80});
  for (std::int64_t row = 0; row < 100; ++row) ASSERT_EQ(one.at(row).source, other.at(row).source);
}

}  // namespace source_turns_test
}  // namespace zero
