// Resumed runs continue their seconds and their dropout. Rank 0's clock decides when a run is saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "tests/unit/train/trainer_bench.h"

namespace zero::testing {
namespace {

using ::testing::ElementsAre;

/// Two ranks, whose last checkpoint before the sixth step is that of the third.
BenchRun run_with_checkpoints(std::vector<std::string> more = {}) {
  BenchRun run;
  run.ranks = 2;
  run.settings = {"zero.stage=3", "training.global_batch_size=2", "checkpoint.interval=3"};
  run.settings.insert(run.settings.end(), more.begin(), more.end());
  return run;
}

thread_local int rows_read = 0;  // by a rank, for training

/// Until a rank has read so many rows.
std::function<void(std::int64_t)> killed_at_row(int last) {
  return [last](std::int64_t) {
    if (++rows_read == last) throw Error("killed");
  };
}

TEST(ResumedRun, CountsItsSecondsOn) {
  BenchRun run = run_with_checkpoints();
  run.metrics = ::testing::TempDir() + "zero_seconds_" + std::to_string(::getpid());
  MemoryDisk disk("/disk");
  BenchRun first = run;
  first.before_row = [killed = killed_at_row(6)](std::int64_t row) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the rest of the run takes no such time
    killed(row);
  };
  ASSERT_EQ(train(first, disk).error, "killed");
  run.resume = true;
  ASSERT_EQ(train(run, disk).error, "");
  std::vector<double> seconds;
  std::ifstream file(run.metrics);
  for (std::string line; std::getline(file, line);) seconds.push_back(nlohmann::json::parse(line)["seconds"]);
  ASSERT_EQ(seconds.size(), 8u);
  EXPECT_TRUE(std::is_sorted(seconds.begin(), seconds.end())) << ::testing::PrintToString(seconds);
  std::filesystem::remove(run.metrics);
}

TEST(ResumedRun, DrawsTheDropoutOfItsSteps) {
  const std::vector<std::vector<std::string>> settings{
      {"lora.r=4", "lora.target_modules=[\"all-linear\"]", "lora.lora_dropout=0.3"},
      {"model.embedding_dropout=0.1", "model.attention_dropout=0.2", "model.residual_dropout=0.1"}};
  for (const auto& dropout : settings) {
    const auto run = [&] { return run_with_checkpoints(dropout); };
    MemoryDisk undisturbed("/disk"), disk("/disk");
    const BenchResult whole = train(run(), undisturbed);
    BenchRun first = run(), second = run();
    first.before_row = killed_at_row(6);
    ASSERT_EQ(train(first, disk).error, "killed");
    second.resume = true;
    expect_equal(train(second, disk).weights, whole.weights);
  }
}

// Rank 0's takes ten seconds for a step, the other's an hour.
TEST(Clocks, TheFirstRanksCounts) {
  BenchRun run = run_with_checkpoints({"checkpoint.every_minutes=0.5", "checkpoint.keep=9"});
  run.settings[2] = "checkpoint.interval=0";
  run.steps = 8;
  run.before_row = [](std::int64_t) { ++rows_read; };
  run.now = [](int rank) {
    return RunClock::Clock::time_point(std::chrono::seconds((rank == 0 ? 10 : 3600) * rows_read));
  };
  MemoryDisk disk("/disk");
  const BenchResult found = train(run, disk);
  ASSERT_EQ(found.error, "");
  EXPECT_THAT(found.checkpoints, ElementsAre(8, 6, 3));
}

}  // namespace
}  // namespace zero::testing
