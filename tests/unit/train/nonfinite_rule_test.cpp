#include "zero/train/nonfinite/nonfinite_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zero {
namespace {

using ::testing::ElementsAre;

NonfiniteRule rule_of(const std::string& choice, std::int64_t limit) {
  TrainingConfig config;
  config.on_nonfinite = choice;
  config.max_skipped_steps = config.max_rollbacks = limit;
  return NonfiniteRule(config);
}

TEST(NonfiniteRule, StopsByDefault) { EXPECT_EQ(NonfiniteRule(TrainingConfig()).choice(), OnNonfinite::stop); }

TEST(NonfiniteRule, CountsSkipsInARow) {
  NonfiniteRule rule = rule_of("skip", 2);
  EXPECT_TRUE(rule.skip(4));
  EXPECT_TRUE(rule.skip(5));
  EXPECT_FALSE(rule.skip(6));
  rule.took();
  EXPECT_TRUE(rule.skip(7));
  EXPECT_THAT(rule.state(7).steps, ElementsAre(4, 5, 7));
  EXPECT_EQ(rule.count_until(5), 2);
  NonfiniteRule next = rule_of("skip", 2);
  next.resume(rule.state(7));
  EXPECT_TRUE(next.skip(8));
  EXPECT_FALSE(next.skip(9)) << "the row goes on where the run does";
}

TEST(NonfiniteRule, BlamesTheStepItself) {
  NonfiniteRule rule = rule_of("rollback", 1);
  ASSERT_TRUE(rule.go_back());
  ASSERT_TRUE(rule.blame({8, true, 7}, 6));
  EXPECT_TRUE(rule.passes_over(8));
  EXPECT_FALSE(rule.passes_over(7));
  EXPECT_TRUE(rule.watches(8));
  EXPECT_FALSE(rule.watches(9));
  EXPECT_EQ(rule.count_until(7), 0) << "it is still to come";
}

TEST(NonfiniteRule, BlamesTheUpdateThatBrokeTheStates) {
  NonfiniteRule rule = rule_of("rollback", 1);
  ASSERT_TRUE(rule.blame({8, false, 7}, 6));
  EXPECT_THAT(rule.state(6).steps, ElementsAre(7));
  EXPECT_FALSE(rule.blame({9, false, 6}, 6)) << "the checkpoint has it";
}

TEST(NonfiniteRule, BlamesTheUpdateBeforeFailuresInARow) {
  NonfiniteRule rule = rule_of("rollback", 9);
  ASSERT_TRUE(rule.blame({8, true, 7}, 5));
  ASSERT_TRUE(rule.blame({9, true, 7}, 5));
  EXPECT_THAT(rule.state(5).steps, ElementsAre(7, 8, 9));
  ASSERT_TRUE(rule.blame({10, true, 6}, 6));
  EXPECT_THAT(rule.state(5).steps, ElementsAre(7, 8, 9, 10)) << "what the checkpoint has cannot be undone";
}

TEST(NonfiniteRule, GoesBackSoOftenUntilACheckpointBeyondTheFailure) {
  NonfiniteRule rule = rule_of("rollback", 2);
  for (const std::int64_t step : {8, 10}) {
    EXPECT_TRUE(rule.go_back());
    rule.blame({step, true, step - 1}, 6);
  }
  rule.saved(9);
  EXPECT_EQ(rule.state(9).rollbacks, 2);
  EXPECT_FALSE(rule.go_back());
  EXPECT_EQ(rule.state(10).rollbacks, 0) << "as it will be when that checkpoint is there";
  rule.saved(10);
  EXPECT_TRUE(rule.go_back());
  EXPECT_FALSE(rule.watches(10));
}

}  // namespace
}  // namespace zero
