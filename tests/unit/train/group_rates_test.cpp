#include <gtest/gtest.h>

#include "tests/unit/train/trainer_bench.h"

namespace zero::testing {
namespace {

// A group of all tensors is the run at the group's rate: in the warm-up, in the decay, and while the run's own
// rate is 0.
TEST(GroupRates, FollowTheScheduleWhateverTheRunsRate) {
  const auto weights = [](const std::string& run_lr, const std::string& groups) {
    BenchRun run{.settings = {"optimizer.lr=" + run_lr, "lr_scheduler.type=\"cosine\"", "lr_scheduler.warmup_steps=3"}};
    run.groups = groups;
    MemoryDisk disk("/disk");
    const BenchResult result = train(run, disk);
    EXPECT_EQ(result.error, "");
    return result.weights;
  };
  const auto expected = weights("0.02", "");
  for (const char* run_lr : {"0", "0.001", "0.02"})
    expect_equal(weights(run_lr, "[[optimizer.group]]\nmatch = \"*\"\nlr = 0.02\n"), expected);
}

}  // namespace
}  // namespace zero::testing
