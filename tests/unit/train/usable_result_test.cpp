// A run whose weights are of no use fails, however its last steps went.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "tests/unit/train/trainer_bench.h"

namespace zero::testing {
namespace {

using ::testing::HasSubstr;

BenchRun run_of(std::int64_t steps, const std::string& choice, std::vector<std::string> more = {}) {
  BenchRun run;
  run.ranks = 2;
  run.steps = steps;
  run.settings = {"zero.stage=2", "training.global_batch_size=2", "training.on_nonfinite=" + choice,
                  "checkpoint.interval=0"};
  run.settings.insert(run.settings.end(), more.begin(), more.end());
  return run;
}

// The first update makes the weights so large that every later step is skipped, or comes last.
TEST(UsableResult, WeightsThatTheLastUpdateMadeTooLargeAreNone) {
  for (const auto& [choice, steps] : {std::pair{"skip", 9}, {"skip", 2}, {"stop", 1}}) {
    MemoryDisk disk("/disk");
    const BenchResult found = train(run_of(steps, choice, {"optimizer.lr=1e15"}), disk);
    EXPECT_THAT(found.error, HasSubstr("the loss of the data of step 1 is not finite")) << choice << steps;
    EXPECT_EQ(found.code, ExitCode::failure);
    EXPECT_TRUE(found.weights.empty());
  }
}

// The loss of such weights is ln(vocabulary): the sums of norms overflow, and nothing of them is left.
TEST(UsableResult, WeightsWithoutFiniteGradientsAreNone) {
  for (const auto& [choice, steps] : {std::pair{"skip", 9}, {"stop", 1}})
    for (const char* lr : {"1e20", "1e25", "1e30"}) {
      MemoryDisk disk("/disk");
      const BenchResult found = train(run_of(steps, choice, {std::string("optimizer.lr=") + lr}), disk);
      EXPECT_THAT(found.error, HasSubstr("of the data of step 1 ")) << choice << lr;
      EXPECT_EQ(found.code, ExitCode::failure);
      EXPECT_TRUE(found.weights.empty());
    }
}

TEST(UsableResult, ARunThatEndsInAsManySkippedStepsAsThereMayBeFails) {
  for (const int most : {2, 3}) {
    BenchRun run = run_of(6, "skip", {"training.max_skipped_steps=" + std::to_string(most)});
    for (const std::int64_t step : {5, 6})
      run.plants.push_back({row_of(run, step, 1, 0), 2, 0, with_last(std::numeric_limits<double>::quiet_NaN())});
    MemoryDisk disk("/disk");
    const BenchResult found = train(run, disk);
    EXPECT_THAT(found.error, most == 2 ? HasSubstr("the last 2 steps were skipped") : HasSubstr(""));
    EXPECT_EQ(found.weights.empty(), most == 2) << found.error;
  }
}

// Trained states are not lost to a disk that is gone when the weights are tried.
TEST(UsableResult, DataThatCannotBeReadAgainAreAWarning) {
  BenchRun run = run_of(3, "stop");
  run.before_row = [last = row_of(run, 3, 1, 0), reads = 0](std::int64_t row) mutable {
    if (row == last && ++reads == 2) throw Error("the data are gone");
  };
  MemoryDisk disk("/disk");
  ::testing::internal::CaptureStderr();
  const BenchResult found = train(run, disk);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the data are gone"));
  EXPECT_EQ(found.error, "");
  EXPECT_FALSE(found.weights.empty());
}

}  // namespace
}  // namespace zero::testing
