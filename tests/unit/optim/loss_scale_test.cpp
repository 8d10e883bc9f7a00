#include "zero/optim/loss_scale.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "zero/optim/clip.h"

namespace zero {
namespace {

TEST(LossScale, DoublesAfterACleanStretch) {
  LossScale scale;
  for (int i = 0; i < 1999; ++i) EXPECT_TRUE(scale.update(true));
  EXPECT_EQ(scale.scale(), 65536.0);
  EXPECT_TRUE(scale.update(true));
  EXPECT_EQ(scale.scale(), 131072.0);
  EXPECT_EQ(scale.clean_steps(), 0);
}

TEST(LossScale, HalvesOnOverflowAndCountsAfresh) {
  LossScale scale({.start = 1024, .growth_interval = 3});
  EXPECT_TRUE(scale.update(true));
  EXPECT_TRUE(scale.update(true));
  EXPECT_FALSE(scale.update(false));
  EXPECT_EQ(scale.scale(), 512);
  EXPECT_EQ(scale.skipped_steps(), 1);
  EXPECT_TRUE(scale.update(true));
  EXPECT_TRUE(scale.update(true));
  EXPECT_EQ(scale.scale(), 512);
  EXPECT_TRUE(scale.update(true));
  EXPECT_EQ(scale.scale(), 1024);
}

TEST(LossScale, StopsTheRunAtTheFloor) {
  LossScale scale({.start = 4, .floor = 1});
  EXPECT_FALSE(scale.update(false));
  EXPECT_FALSE(scale.update(false));
  EXPECT_EQ(scale.scale(), 1);
  EXPECT_THROW(scale.update(false), Error);
}

TEST(LossScale, StopsGrowingAtTheCeiling) {
  LossScale scale({.start = 8, .ceiling = 16, .growth_interval = 1});
  for (int i = 0; i < 5; ++i) scale.update(true);
  EXPECT_EQ(scale.scale(), 16);
}

TEST(LossScale, ARunThatTrainedNothingIsNoSuccess) {
  LossScale scale;
  EXPECT_FALSE(scale.update(false));
  EXPECT_THROW(scale.require_trained(1, 2.5), Error);
  EXPECT_TRUE(scale.update(true));
  EXPECT_NO_THROW(scale.require_trained(2, 2.5));
  EXPECT_THROW(scale.require_trained(2, std::numeric_limits<double>::quiet_NaN()), Error);
  EXPECT_THROW(scale.require_trained(2, std::numeric_limits<double>::infinity()), Error);
}

TEST(LossScale, ContinuesFromACheckpoint) {
  LossScale scale({.growth_interval = 10});
  scale.restore(256, 9, 4);
  EXPECT_TRUE(scale.update(true));
  EXPECT_EQ(scale.scale(), 512);
  EXPECT_EQ(scale.skipped_steps(), 4);
  EXPECT_ANY_THROW(scale.restore(0, 0, 0));
}

TEST(Clip, FollowsTorch) {
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_factor(4.0, 1.0), 1.0 / (4.0 + 1e-6));
  EXPECT_EQ(clip_factor(100.0, 0.0), 1.0);
}

}  // namespace
}  // namespace zero
