// Runs with steps that are not finite whose checkpoints are written while training goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "tests/unit/train/trainer_bench.h"

namespace zero::testing {
namespace {

using ::testing::ElementsAre;

class NonfiniteBehind : public ::testing::TestWithParam<const char*> {
 protected:
  BenchRun run() const {
    BenchRun run;
    run.ranks = 2;
    run.steps = 10;
    run.settings = {"training.global_batch_size=4", "training.on_nonfinite=rollback", "checkpoint.interval=3",
                    "checkpoint.asynchronous=true", GetParam()};
    return run;
  }
  static void plant_nan(BenchRun& run, std::int64_t step) {
    run.plants.push_back({row_of(run, step, 1, 0), 2, 0, with_last(std::numeric_limits<double>::quiet_NaN())});
  }
};

TEST_P(NonfiniteBehind, AFailureGoesBackToTheCheckpointThatIsBeingWritten) {
  BenchRun run = this->run();
  plant_nan(run, 7);
  std::mutex counting;
  std::map<std::int64_t, int> reads;
  run.before_row = [&](std::int64_t row) {
    const std::lock_guard lock(counting);
    ++reads[row];
  };
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.passed->steps, ElementsAre(7));
  EXPECT_THAT(found.checkpoints, ElementsAre(10, 9));
  EXPECT_EQ(reads[row_of(run, 6, 0, 0)], 1) << "the run went back farther than to step 6";
  run.before_row = {};
  expect_equal(found.weights, train_without({7}, this->run()));
}

TEST_P(NonfiniteBehind, IfThatOneFailsOnARankItGoesBackToTheOneBefore) {
  BenchRun run = this->run();
  plant_nan(run, 7);
  CallPlan plan;
  run.last_ranks_disk = &plan;
  const std::int64_t before = row_of(run, 6, 1, 1), again = row_of(run, 4, 1, 0);
  run.before_row = [&, fails = true](std::int64_t row) mutable {  // on rank 1
    if (row == before && std::exchange(fails, false))
      plan = {.fail_at = 0, .fail_with = ENOSPC, .fails = Fails::changes};
    if (row == again) plan = {};
  };
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.passed->steps, ElementsAre(7));
  EXPECT_THAT(found.checkpoints, ElementsAre(10, 9));
  expect_equal(found.weights, train_without({7}, this->run()));
}

TEST_P(NonfiniteBehind, ARunThatIsKilledAndGoesOnDoesTheSame) {
  BenchRun run = this->run();
  plant_nan(run, 5);
  plant_nan(run, 7);
  MemoryDisk disk("/disk");
  const BenchResult whole = train(run, disk);
  ASSERT_EQ(whole.error, "");
  for (int killed_at = 9; killed_at < 30; killed_at += 3) {  // rows that a rank reads
    MemoryDisk other("/disk");
    BenchRun first = run;
    first.before_row = [killed_at](std::int64_t) {
      thread_local int read = 0;
      if (++read == killed_at) throw Error("killed");
    };
    const BenchResult left = train(first, other);
    BenchRun second = run;
    second.resume = !left.checkpoints.empty();
    const BenchResult found = train(second, other);
    ASSERT_EQ(found.error, "") << killed_at;
    expect_equal(found.weights, whole.weights);
    EXPECT_EQ(found.passed, whole.passed) << killed_at;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, NonfiniteBehind,
                         ::testing::Values("zero.stage=3", "job.reproducible=ranks", "offload.optimizer=cpu"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (!std::isalnum(c)) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace zero::testing
