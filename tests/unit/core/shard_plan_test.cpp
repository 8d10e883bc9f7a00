#include "zero/core/shard_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace zero {
namespace {

TEST(ShardPlan, StagesShardOneMoreThingEach) {
  for (int stage = 0; stage <= 3; ++stage) {
    const ShardPlan plan = ShardPlan::for_stage(stage);
    EXPECT_EQ(plan.stage(), stage);
    EXPECT_EQ(plan.optimizer == Placement::sharded, stage >= 1);
    EXPECT_EQ(plan.gradients == Placement::sharded, stage >= 2);
    EXPECT_EQ(plan.parameters == Placement::sharded, stage >= 3);
  }
}

TEST(ShardPlan, RefusesWhatIsNoStage) {
  EXPECT_THROW(ShardPlan::for_stage(4), InputError);
  EXPECT_THROW(ShardPlan::for_stage(-1), InputError);
  const auto r = Placement::resident, s = Placement::sharded;
  EXPECT_THROW((ShardPlan{s, r, r}.stage()), InputError);
  EXPECT_THROW((ShardPlan{s, s, r}.stage()), InputError);
  EXPECT_THROW((ShardPlan{r, s, r}.stage()), InputError);
  EXPECT_THROW((ShardPlan{s, r, s}.stage()), InputError);
}

}  // namespace
}  // namespace zero
