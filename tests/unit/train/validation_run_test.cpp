// Validations that end early. Nothing that was trained is at risk, and the resumed run has the records of an
// undisturbed one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/error.h"
#include "tests/unit/train/object_of_line.h"
#include "tests/unit/train/trainer_bench.h"

namespace zero::testing {
namespace validation_run_test {

using ::testing::ElementsAre;

thread_local int rows_read = 0;  // by a rank, for validation

class ValidationRuns : public ::testing::Test {
 protected:
  ~ValidationRuns() override { std::filesystem::remove_all(folder_); }
  ValidationRuns() { std::filesystem::create_directories(folder_); }

  /// Two ranks, whose validations after steps 3, 6 and 8 have four parts.
  BenchRun run(const std::string& name, std::vector<std::string> more = {}) const {
    BenchRun run;
    run.ranks = 2;
    run.validation_rows = 8;
    run.settings = {"zero.stage=3", "training.global_batch_size=2", "training.validation_interval=3",
                    "data.validation=[\"held_out.bin\"]"};
    run.settings.insert(run.settings.end(), more.begin(), more.end());
    run.metrics = folder_ + "/" + name;
    return run;
  }

  /// Without times, which no two runs share.
  std::vector<nlohmann::json> metrics(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(folder_ + "/" + name);
    for (std::string line; std::getline(file, line);) lines.push_back(testing::object_of_line(line));
    return lines;
  }

  /// Expects that `found` and the metrics in `name` repeat those of an undisturbed run.
  void expect_undisturbed(const BenchResult& found, const std::string& name) const {
    MemoryDisk disk("/disk");
    const BenchResult whole = train(run("undisturbed"), disk);
    ASSERT_EQ(found.error, "");
    expect_equal(found.weights, whole.weights);
    ASSERT_EQ(metrics("undisturbed").size(), 8u);
    EXPECT_EQ(metrics(name), metrics("undisturbed"));
  }

  std::string folder_ = ::testing::TempDir() + "zero_validation_" + std::to_string(::getpid());
};

std::function<void(std::int64_t)> killed_at_row(int last) {
  return [last](std::int64_t) {
    if (++rows_read == last) throw Error("killed");
  };
}

bool holds(const MemoryDisk& disk, const std::string& path) {
  const std::vector<std::string> files = disk.files();
  return std::find(files.begin(), files.end(), path) != files.end();
}

// Each row takes ten seconds of 80, of which 24 are kept: after the third part of the first validation nothing more
// fits.
TEST_F(ValidationRuns, TheClockEndsTheRunBetweenTwoParts) {
  BenchRun first = run("metrics", {"job.time_limit=01:20"});
  const auto count = [](std::int64_t) { ++rows_read; };
  first.before_row = first.before_validation_row = count;
  first.now = [](int) { return RunClock::Clock::time_point(std::chrono::seconds(10 * rows_read)); };
  MemoryDisk disk("/disk");
  const BenchResult stopped = train(first, disk);
  ASSERT_EQ(stopped.error, "");
  EXPECT_THAT(stopped.checkpoints, ElementsAre(3));
  EXPECT_EQ(metrics("metrics").size(), 2u);  // the line of the third step waits for its validation
  BenchRun second = run("metrics");
  second.resume = true;
  expect_undisturbed(train(second, disk), "metrics");
}

// The second validation would be as long as the first: the run ends before it, and the line of its step waits.
TEST_F(ValidationRuns, TheClockReckonsWithTheLongestOne) {
  BenchRun first = run("metrics", {"job.time_limit=02:35"});
  const auto count = [](std::int64_t) { ++rows_read; };
  std::atomic<int> validated = 0;
  first.before_row = count;
  first.before_validation_row = [&](std::int64_t) {
    ++rows_read;
    ++validated;
  };
  first.now = [](int) { return RunClock::Clock::time_point(std::chrono::seconds(10 * rows_read)); };
  MemoryDisk disk("/disk");
  EXPECT_THAT(train(first, disk).checkpoints, ElementsAre(6));  // at 100 s: 40 more leave 15, and 17.75 are kept
  EXPECT_EQ(validated, 8);
}

// By half precision's rule there is no model of a last step without a loss, wherever the run was stopped.
TEST_F(ValidationRuns, ALastLossThatIsNotFiniteStaysSo) {
  const auto asked = [&](const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"training.precision=fp16", "lora.r=4", "training.validation_interval=100"});
    BenchRun run = this->run(name, more);
    run.broken_rows = {row_of(run, 8, 0, 0)};
    return run;
  };
  BenchRun first = asked("metrics", {"job.time_limit=01:50"});  // ten seconds a row: a part of the validation fits
  first.before_row = first.before_validation_row = [](std::int64_t) { ++rows_read; };
  first.now = [](int) { return RunClock::Clock::time_point(std::chrono::seconds(10 * rows_read)); };
  MemoryDisk disk("/disk"), other("/disk");
  const BenchResult stopped = train(first, disk);
  ASSERT_EQ(stopped.error, "");
  EXPECT_THAT(stopped.checkpoints, ElementsAre(8));
  ASSERT_EQ(metrics("metrics").size(), 7u);
  BenchRun second = asked("metrics");
  second.resume = true;
  const std::string why = "nan after the last step, with 2 of 8 steps skipped: no model is written";
  EXPECT_THAT(train(second, disk).error, ::testing::HasSubstr(why));
  EXPECT_THAT(train(asked("undisturbed"), other).error, ::testing::HasSubstr(why));
}

TEST_F(ValidationRuns, DueCheckpointsAreSavedFirst) {
  MemoryDisk disk("/disk");
  BenchRun first = run("metrics", {"checkpoint.interval=3"});
  first.before_validation_row = [&, killed = killed_at_row(7)](std::int64_t row) {
    EXPECT_TRUE(holds(disk, "/disk/run/checkpoints/step-00000003/manifest.json"));
    killed(row);  // in the second one
  };
  const BenchResult found = train(first, disk);
  ASSERT_EQ(found.error, "killed");
  EXPECT_THAT(found.checkpoints, ElementsAre(6, 3));
  BenchRun second = run("metrics", {"checkpoint.interval=3"});
  std::atomic<int> validated = 0;
  second.resume = true;
  second.before_validation_row = [&](std::int64_t) { ++validated; };
  expect_undisturbed(train(second, disk), "metrics");
  EXPECT_EQ(validated, 16);  // after steps 6 and 8
}

TEST_F(ValidationRuns, APendingSaveCompletesDuringIt) {
  MemoryDisk disk("/disk");
  BenchRun asked = run("metrics", {"checkpoint.interval=3", "checkpoint.asynchronous=true"});
  asked.steps = 4;
  asked.validation_rows = 1000;
  std::atomic<bool> complete = false;
  asked.before_validation_row = [&](std::int64_t row) {
    if (holds(disk, "/disk/run/checkpoints/step-00000003/manifest.json")) complete = true;
    if (!complete) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(complete || row != 999);
  };
  EXPECT_EQ(train(asked, disk).error, "");
}

// scripts/keep_training --hang watches the file.
TEST_F(ValidationRuns, ShowsThatItLives) {
  namespace fs = std::filesystem;
  BenchRun asked = run("metrics");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  asked.before_validation_row = [&, first = true](std::int64_t row) mutable {  // rank 0 has the even ones
    if (row == 0 && std::exchange(first, false)) fs::last_write_time(asked.metrics, long_ago);
    EXPECT_TRUE(row != 6 || fs::last_write_time(asked.metrics) > long_ago + std::chrono::minutes(30));
  };
  MemoryDisk disk("/disk");
  EXPECT_EQ(train(asked, disk).error, "");
}

// The checkpoint owes it, the records have it.
TEST_F(ValidationRuns, AFinishedValidationIsNotRepeated) {
  MemoryDisk disk("/disk");
  BenchRun first = run("metrics", {"checkpoint.interval=3"});
  first.before_row = killed_at_row(5);  // of the second step after the validation
  ASSERT_EQ(train(first, disk).error, "killed");
  BenchRun second = run("metrics", {"checkpoint.interval=3"});
  std::atomic<int> validated = 0;
  second.resume = true;
  second.before_validation_row = [&](std::int64_t) { ++validated; };
  expect_undisturbed(train(second, disk), "metrics");
  EXPECT_EQ(validated, 16);
}

// A checkpoint of another time is due while a validation goes on, and no second one of the same step.
TEST_F(ValidationRuns, TheClockSavesWithinIt) {
  BenchRun asked = run("metrics", {"checkpoint.every_minutes=1", "checkpoint.keep=9"});
  const auto count = [](std::int64_t) { ++rows_read; };
  asked.before_row = asked.before_validation_row = count;
  asked.now = [](int) { return RunClock::Clock::time_point(std::chrono::seconds(10 * rows_read)); };
  MemoryDisk disk("/disk");
  const BenchResult found = train(asked, disk);
  EXPECT_THAT(found.checkpoints, ElementsAre(8, 6, 3));
  expect_undisturbed(found, "metrics");
}

}  // namespace validation_run_test
}  // namespace zero::testing
