#include "zero/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "comm/error.h"

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
  std::string path_ = ::testing::TempDir() + "zero_metrics_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(Metrics, NumbersReadBackExactly) {
  StepMetrics metrics = step(7);
  metrics.grad_norm = 1e-300;
  metrics.tokens = (std::int64_t{1} << 53) + 1;
  metrics.validation_loss = 0.1;
  const auto object = nlohmann::json::parse(format_metrics(metrics));
  EXPECT_EQ(object["version"], 1);
  EXPECT_EQ(object["step"], 7);
  EXPECT_EQ(object["loss"].get<double>(), 10.0 / 3.0);
  EXPECT_EQ(object["grad_norm"].get<double>(), 1e-300);
  EXPECT_EQ(object["tokens"].get<std::int64_t>(), (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(object["validation_loss"].get<double>(), 0.1);
  EXPECT_FALSE(object.contains("loss_scale"));
}

TEST(Metrics, WhatIsNotFiniteIsNull) {
  StepMetrics metrics = step(1);
  metrics.loss = std::nan("");
  metrics.grad_norm = INFINITY;
  const auto object = nlohmann::json::parse(format_metrics(metrics));
  EXPECT_TRUE(object["loss"].is_null());
  EXPECT_TRUE(object["grad_norm"].is_null());
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

TEST_F(MetricsFile, ResumeMakesAMissingFile) {
  MetricsWriter::resume(path_, 3).write(step(4));
  EXPECT_EQ(read(path_), format_metrics(step(4)) + "\n");
}

TEST(Metrics, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(MetricsWriter("/nonexistent/metrics.jsonl"), Error);
  MetricsWriter full("/dev/full");
  EXPECT_THROW(full.write(step(1)), Error);
}

}  // namespace
}  // namespace zero
