#include "zero/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace zero {
namespace {

ScheduleOptions make(ScheduleType type) {
  return {.type = type, .lr = 2e-3, .steps = 110, .warmup_steps = 10, .min_lr_ratio = 0.1, .decay_ratio = 0.2};
}

TEST(Schedule, WarmUpEndsAtTheFullRate) {
  for (const auto type : {ScheduleType::constant, ScheduleType::linear, ScheduleType::cosine, ScheduleType::wsd}) {
    EXPECT_DOUBLE_EQ(learning_rate(make(type), 0), 2e-4);
    EXPECT_DOUBLE_EQ(learning_rate(make(type), 9), 2e-3);
    EXPECT_DOUBLE_EQ(learning_rate(make(type), 10), 2e-3);
  }
}

TEST(Schedule, FollowsItsFormula) {
  EXPECT_DOUBLE_EQ(learning_rate(make(ScheduleType::constant), 100), 2e-3);
  EXPECT_DOUBLE_EQ(learning_rate(make(ScheduleType::linear), 60), 2e-3 * (1 - 0.9 * 0.5));
  EXPECT_DOUBLE_EQ(learning_rate(make(ScheduleType::cosine), 60), 2e-3 * 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(make(ScheduleType::cosine), 35),
                   2e-3 * (0.1 + 0.9 * (1 + std::cos(std::numbers::pi / 4)) / 2));
  EXPECT_DOUBLE_EQ(learning_rate(make(ScheduleType::wsd), 88), 2e-3);  // the last 22 steps fall
  EXPECT_DOUBLE_EQ(learning_rate(make(ScheduleType::wsd), 99), 2e-3 * (1 - 0.9 * 0.5));
}

TEST(Schedule, EndsAtTheFloor) {
  for (const auto type : {ScheduleType::linear, ScheduleType::cosine, ScheduleType::wsd}) {
    EXPECT_NEAR(learning_rate(make(type), 110), 2e-4, 1e-18);
    EXPECT_NEAR(learning_rate(make(type), 500), 2e-4, 1e-18);
  }
}

TEST(Schedule, WithoutWarmUpStartsAtTheFullRate) {
  ScheduleOptions options = make(ScheduleType::cosine);
  options.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 2e-3);
}

}  // namespace
}  // namespace zero
