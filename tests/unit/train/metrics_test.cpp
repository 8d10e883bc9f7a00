#include "zero/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "tests/sim/memory_disk.h"
#include "tests/unit/train/full_disk.h"

namespace zero {
namespace {

std::string read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

StepMetrics step(std::int64_t number) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.loss = 10.0 / 3.0;
  return metrics;
}

class MetricsFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_ =
      ::testing::TempDir() + "zero_metrics_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(Metrics, NumbersReadBackExactly) {
  StepMetrics metrics = step(7);
  metrics.grad_norm = 1e-300;
  metrics.optimizer = {{"d_lr", 0.1}};
  metrics.tokens = (std::int64_t{1} << 53) + 1;
  metrics.validation_loss = 0.1;
  const auto object = nlohmann::json::parse(format_metrics(metrics));
  EXPECT_EQ(object["version"], 1);
  EXPECT_EQ(object["step"], 7);
  EXPECT_EQ(object["loss"].get<double>(), 10.0 / 3.0);
  EXPECT_EQ(object["grad_norm"].get<double>(), 1e-300);
  EXPECT_EQ(object["d_lr"].get<double>(), 0.1);
  EXPECT_EQ(object["tokens"].get<std::int64_t>(), (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(object["validation_loss"].get<double>(), 0.1);
  EXPECT_FALSE(object.contains("loss_scale"));
}

TEST(Metrics, NonFiniteNumbersAreNull) {
  StepMetrics metrics = step(1);
  metrics.loss = std::nan("");
  metrics.grad_norm = INFINITY;
  const auto object = nlohmann::json::parse(format_metrics(metrics));
  EXPECT_TRUE(object["loss"].is_null());
  EXPECT_TRUE(object["grad_norm"].is_null());
}

TEST(Metrics, ALineIsReadBackAsWhatItWasMadeOf) {
  StepMetrics metrics = step(7);
  metrics.loss = std::nan("");
  metrics.tokens = (std::int64_t{1} << 53) + 1;
  metrics.trained_tokens = 5;
  metrics.peak_bytes = 9;
  metrics.seconds = 0.1;
  EXPECT_EQ(format_metrics(parse_metrics(format_metrics(metrics))), format_metrics(metrics));
  EXPECT_TRUE(std::isnan(parse_metrics(format_metrics(metrics)).loss));
  metrics.validation_loss = std::nan("");
  metrics.skipped = 3;
  metrics.time = 1764181811.125;
  metrics.epoch = 1.0 / 3.0;
  metrics.host_available_bytes = (std::int64_t{1} << 53) + 1;
  metrics.host_used_bytes = 7;
  metrics.load_average = 0.25;
  metrics.loss_scale = 65536;
  metrics.optimizer = {{"muon_matrices", 4}, {"d_lr", 0.1}};
  metrics.parts = {{"step_seconds", 0.3}, {"step_products", 0.1}, {"slowest_rank", 2}};
  EXPECT_EQ(format_metrics(parse_metrics(format_metrics(metrics))), format_metrics(metrics));
  EXPECT_TRUE(parse_metrics(format_metrics(metrics)).optimizer == metrics.optimizer);
  EXPECT_TRUE(parse_metrics(format_metrics(metrics)).parts == metrics.parts);
  for (const char* line : {"", "{\"step\":", "{\"step\":\"x\"}", "{\"loss\":{}}"})
    EXPECT_THROW(parse_metrics(line), Error);
}

TEST(Metrics, FiguresAreAllNumbersOfALine) {
  StepMetrics metrics = step(7);
  metrics.grad_norm = INFINITY;
  metrics.time = 5;
  metrics.validation_loss = 2;
  metrics.optimizer = {{"d", 0.5}};
  const auto figures = figures_of(metrics);
  const std::map<std::string, double> by_name(figures.begin(), figures.end());
  auto object = nlohmann::json::parse(format_metrics(metrics));
  for (const char* name : {"version", "step", "time"}) object.erase(name);
  EXPECT_EQ(by_name.size(), object.size());
  EXPECT_EQ(by_name.at("loss"), 10.0 / 3.0);
  EXPECT_EQ(by_name.at("grad_norm"), INFINITY);
  EXPECT_EQ(by_name.at("validation_loss"), 2);
  EXPECT_EQ(by_name.at("d"), 0.5);
}

TEST_F(MetricsFile, TheLastStepIsOfTheFileOrOfWhatWaits) {
  MetricsWriter writer(path_);
  EXPECT_EQ(writer.last_step(), 0);
  for (int i = 1; i <= 3; ++i) writer.write(step(i));
  EXPECT_EQ(writer.last_step(), 3);
  writer.cut_after(2);
  EXPECT_EQ(writer.last_step(), 2);
  EXPECT_EQ(MetricsWriter::resume(path_, 9).last_step(), 2);
  EXPECT_EQ(MetricsWriter::resume(path_, 1).last_step(), 1);
  EXPECT_EQ(MetricsWriter::resume(path_, 9, format_metrics(step(4)) + "\n").last_step(), 4);
}

TEST_F(MetricsFile, ASignOfLifeChangesItsTimeAlone) {
  namespace fs = std::filesystem;
  MetricsWriter writer(path_);
  writer.write(step(1));
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(path_, long_ago);
  writer.touch();
  EXPECT_GT(fs::last_write_time(path_), long_ago + std::chrono::minutes(30));
  EXPECT_EQ(read(path_), format_metrics(step(1)) + "\n");
}

TEST_F(MetricsFile, EveryLineIsOnDiskAtOnce) {
  MetricsWriter writer(path_);
  writer.write(step(1));
  EXPECT_EQ(read(path_), format_metrics(step(1)) + "\n");
}

TEST_F(MetricsFile, ResumeCutsLaterStepsAndATornLine) {
  {
    MetricsWriter writer(path_);
    for (int i = 1; i <= 5; ++i) writer.write(step(i));
  }
  std::ofstream(path_, std::ios::app) << "{\"version\":1,\"step\":2";
  MetricsWriter writer = MetricsWriter::resume(path_, 3);
  writer.write(step(4));
  std::string expected;
  for (int i = 1; i <= 4; ++i) expected += format_metrics(step(i)) + "\n";
  EXPECT_EQ(read(path_), expected);
}

TEST_F(MetricsFile, ResumeCutsATornLastLine) {
  std::ofstream(path_) << format_metrics(step(1)) << "\n" << format_metrics(step(2));
  MetricsWriter::resume(path_, 9).write(step(3));
  EXPECT_EQ(read(path_), format_metrics(step(1)) + "\n" + format_metrics(step(3)) + "\n");
}

TEST_F(MetricsFile, ADamagedLineInTheMiddleCostsThatLine) {
  const std::string zeros(200, '\0');
  for (const std::string& damaged : {zeros, std::string("{\"version\":1,\"st"), std::string("[]"), std::string()}) {
    std::ofstream file(path_, std::ios::binary);
    std::string expected;
    for (int i = 1; i <= 6; ++i) {
      file << (i == 3 ? damaged : format_metrics(step(i))) << "\n";
      if (i != 3 && i <= 5) expected += format_metrics(step(i)) + "\n";
    }
    file.close();
    ::testing::internal::CaptureStderr();
    MetricsWriter writer = MetricsWriter::resume(path_, 5);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("the first of them line 3"));
    EXPECT_EQ(read(path_), expected);
    EXPECT_EQ(writer.last_step(), 5);
    writer.write(step(6));
    EXPECT_EQ(read(path_), expected + format_metrics(step(6)) + "\n");
  }
}

TEST_F(MetricsFile, DamagedLinesAtTheEndAreToldWhereTheyMayBeOfAStepThatIsKept) {
  const std::string damaged = std::string(200, '\0') + "\n", three = format_metrics(step(3)) + "\n",
                    four = format_metrics(step(4)) + "\n";
  const auto told = [&](const std::string& content, std::int64_t last_step) {
    std::ofstream(path_, std::ios::binary) << content;
    ::testing::internal::CaptureStderr();
    MetricsWriter::resume(path_, last_step);
    EXPECT_EQ(read(path_), three);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(told(three + damaged + damaged, 5),
              ::testing::HasSubstr("2 damaged line(s), the first of them line 2, are left out\n"));
  EXPECT_THAT(told(three + damaged + format_metrics(step(6)) + "\n" + damaged, 5),
              ::testing::HasSubstr("1 damaged line(s)"));
  EXPECT_EQ(told(three + damaged, 3), "");
  EXPECT_EQ(told(three + four + damaged, 3), "");
}

TEST_F(MetricsFile, TheLastRecordedStepIsThatOfTheLastWholeLine) {
  FileCalls calls;
  EXPECT_EQ(last_recorded_step(path_, calls), 0);
  std::ofstream(path_) << format_metrics(step(1)) << "\n" << format_metrics(step(7)) << "\n" << format_metrics(step(8));
  EXPECT_EQ(last_recorded_step(path_, calls), 7);
}

TEST_F(MetricsFile, LinesLongerThanABlockAreRead) {
  StepMetrics large = step(2);
  for (int i = 0; i < 60000; ++i) large.optimizer.emplace_back("a_long_name_of_a_number_" + std::to_string(i), 1.0 / 3);
  std::ofstream(path_) << format_metrics(step(1)) << "\n"
                       << format_metrics(large) << "\n"
                       << format_metrics(step(3)) << "\n";
  const std::string before = read(path_);
  ASSERT_GT(before.size(), 2U << 20);
  EXPECT_EQ(MetricsWriter::resume(path_, 3).last_step(), 3);
  EXPECT_EQ(read(path_), before);
}

TEST_F(MetricsFile, ARunThatGoesBackLosesTheLinesOfItsLaterSteps) {
  MetricsWriter writer(path_);
  for (int i = 1; i <= 5; ++i) writer.write(step(i));
  writer.cut_after(9);
  writer.cut_after(3);
  writer.cut_after(4);
  std::string expected;
  for (int i = 1; i <= 3; ++i) expected += format_metrics(step(i)) + "\n";
  EXPECT_EQ(read(path_), expected);
  writer.write(step(4));
  EXPECT_EQ(read(path_), expected + format_metrics(step(4)) + "\n");
}

TEST_F(MetricsFile, ResumeMakesAMissingFile) {
  const auto told = [&](std::int64_t last_step) {
    std::filesystem::remove(path_);
    ::testing::internal::CaptureStderr();
    MetricsWriter::resume(path_, last_step).write(step(last_step + 1));
    EXPECT_EQ(read(path_), format_metrics(step(last_step + 1)) + "\n");
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told(0), "");
  EXPECT_THAT(told(3),
              ::testing::HasSubstr("is not there any more, and begins anew: the lines of steps up to 3 are gone"));
}

TEST_F(MetricsFile, ResumeWritesTheLinesThatWaited) {
  const auto lines = [](int first, int last) {
    std::string lines;
    for (int i = first; i <= last; ++i) lines += format_metrics(step(i)) + "\n";
    return lines;
  };
  std::ofstream(path_) << lines(1, 3) << "{\"version\":1,\"st";
  MetricsWriter::resume(path_, 5, lines(3, 6));  // of a checkpoint of step 5; some were written after all
  EXPECT_EQ(read(path_), lines(1, 5));
  MetricsWriter::resume(path_, 5, lines(3, 6)).write(step(6));
  EXPECT_EQ(read(path_), lines(1, 6));
  MetricsWriter::resume(path_, 4, "no line\n[]\n").write(step(5));
  EXPECT_EQ(read(path_), lines(1, 5));
}

TEST_F(MetricsFile, AFullDiskDelaysLinesAndTearsNone) {
  const std::string line = format_metrics(step(1)) + "\n";
  MetricsWriter writer(path_);
  writer.write(step(1));
  for (const std::size_t more : {std::size_t(0), line.size() / 2, line.size() - 1}) {
    const std::string before = read(path_);
    const testing::FullDisk full(before.size() + more);
    writer.write(step(2));
    writer.write(step(3));
    EXPECT_EQ(read(path_), before);
  }
  writer.write(step(4));
  std::string expected = line;
  for (int i = 0; i < 3; ++i) expected += format_metrics(step(2)) + "\n" + format_metrics(step(3)) + "\n";
  EXPECT_EQ(read(path_), expected + format_metrics(step(4)) + "\n");
}

TEST_F(MetricsFile, LinesThatWaitAreCutToo) {
  std::string expected;
  for (int i = 1; i <= 3; ++i) expected += format_metrics(step(i)) + "\n";
  MetricsWriter writer(path_);
  writer.write(step(1));
  {
    const testing::FullDisk full(read(path_).size());
    for (int i = 2; i <= 5; ++i) writer.write(step(i));
    writer.cut_after(2);
    EXPECT_EQ(read(path_), format_metrics(step(1)) + "\n");
  }
  writer.write(step(3));
  EXPECT_EQ(read(path_), expected);
}

// Lines are written a few bytes at a time, and one call of them all fails.
TEST(Metrics, ACallThatFailsDelaysLinesAndTearsNone) {
  std::string expected;
  for (int i = 1; i <= 4; ++i) expected += format_metrics(step(i)) + "\n";
  for (int call = 2; call < 60; ++call) {  // the first two open the file
    testing::MemoryDisk disk("/disk");
    testing::CallPlan plan{.fail_at = call, .fail_with = ENOSPC, .short_writes_of = 9};
    MetricsWriter writer("/disk/metrics.jsonl", disk.calls(&plan));
    std::string content;
    for (int i = 1; i <= 4; ++i) {
      if (i == 4) plan.fail_at = -1;
      writer.write(step(i));
      const auto& bytes = disk.content("/disk/metrics.jsonl");
      content.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      EXPECT_TRUE(expected.starts_with(content) && (content.empty() || content.back() == '\n')) << call;
    }
    EXPECT_EQ(content, expected) << call;
  }
}

std::string content_of(testing::MemoryDisk& disk) {
  const auto& bytes = disk.content("/disk/metrics.jsonl");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string lines(int first, int last) {
  std::string lines;
  for (int i = first; i <= last; ++i) lines += format_metrics(step(i)) + "\n";
  return lines;
}

TEST(Metrics, AFileThatCannotBeReadIsLeftAlone) {
  testing::MemoryDisk disk("/disk");
  MetricsWriter writer("/disk/metrics.jsonl", disk.calls());
  for (int i = 1; i <= 4; ++i) writer.write(step(i));
  for (int call = 0; call < 5; ++call) {  // look, open, look, read; the last one opens it for writing
    testing::CallPlan plan{.fail_at = call, .fail_with = ESTALE, .fails = testing::Fails::for_good};
    EXPECT_THROW(MetricsWriter::resume("/disk/metrics.jsonl", 2, "", disk.calls(&plan)), Error) << call;
    EXPECT_EQ(content_of(disk), lines(1, 4)) << call;
  }
}

TEST(Metrics, LinesThatCannotBeCutOffKeepNewOnesWaiting) {
  for (int call = 0; call < 8; ++call) {
    testing::MemoryDisk disk("/disk");
    testing::CallPlan plan;
    MetricsWriter writer("/disk/metrics.jsonl", disk.calls(&plan));
    for (int i = 1; i <= 5; ++i) writer.write(step(i));
    int number = 0;
    plan.reason_of = [&](int) { return number++ >= call ? EIO : 0; };
    writer.cut_after(3);
    writer.write(step(4));
    plan.reason_of = {};
    writer.write(step(5));
    EXPECT_EQ(content_of(disk), lines(1, 5)) << call;
    EXPECT_EQ(writer.waiting(), "") << call;
  }
}

TEST(Metrics, SyncedLinesOutliveALossOfPower) {
  testing::MemoryDisk disk("/disk");
  MetricsWriter writer("/disk/metrics.jsonl", disk.calls());
  for (int i = 1; i <= 3; ++i) writer.write(step(i));
  writer.sync();
  writer.write(step(4));
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    testing::MemoryDisk left = disk.after_power_loss(random);
    EXPECT_TRUE(content_of(left).starts_with(lines(1, 3)));
  }
}

TEST(Metrics, AFileThatCannotBeMadeIsAnErrorAndOneThatIsFullIsNot) {
  EXPECT_THROW(MetricsWriter("/nonexistent/metrics.jsonl"), Error);
  MetricsWriter("/dev/full").write(step(1));
}

}  // namespace
}  // namespace zero
