#include "zero/report/metrics_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The table of a file with this content.
MetricsTable table_of(const std::string& content) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  std::ofstream(path) << content;
  return read_metrics(path);
}

TEST(MetricsTable, HasEveryNumberOfALine) {
  const MetricsTable table = table_of(
      R"({"version": 1, "step": 1, "loss": 2.5, "peak_bytes": 12345678901, "name": "x", "list": [1, {"step": 9}], "on": true})"
      "\n"
      R"({"version": 1, "step": 3, "loss": 2, "d": 1e-6, "inner": {"loss": 7}})"
      "\n");
  EXPECT_THAT(table.steps, ElementsAre(1, 3));
  ASSERT_EQ(table.series.size(), 3);
  EXPECT_THAT(table.find("loss")->values, ElementsAre(2.5, 2));
  EXPECT_THAT(table.find("peak_bytes")->values, ElementsAre(12345678901.));
  EXPECT_THAT(table.find("d")->rows, ElementsAre(1));
  EXPECT_EQ(table.find("version"), nullptr);
  EXPECT_EQ(table.damaged, 0);
  EXPECT_FALSE(table.is_torn);
}

TEST(MetricsTable, NullIsAValueThatIsNotFinite) {
  const MetricsTable table = table_of("{\"step\": 1, \"loss\": null}\n{\"step\": 2, \"loss\": 1}\n");
  ASSERT_EQ(table.find("loss")->values.size(), 2);
  EXPECT_TRUE(std::isnan(table.find("loss")->values[0]));
}

TEST(MetricsTable, TheLastValueOfAStepCounts) {
  const MetricsTable table = table_of(
      "{\"step\": 1, \"loss\": 9}\n{\"step\": 2, \"loss\": 8, \"validation_loss\": 5}\n{\"step\": 3, \"loss\": 7}\n"
      "{\"step\": 2, \"loss\": 6}\n{\"step\": 3, \"loss\": 5}\n{\"step\": 3, \"loss\": 4}\n");
  EXPECT_THAT(table.steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(table.find("loss")->values, ElementsAre(9, 6, 4));
  EXPECT_EQ(table.find("validation_loss"), nullptr) << "of a step that was done anew, without one";
  EXPECT_EQ(table.went_back, 2);
}

TEST(MetricsTable, LeavesOutATornLineAndDamage) {
  const MetricsTable table = table_of(
      "{\"step\": 1, \"loss\": 9}\nnothing\n{\"loss\": 3}\n{\"step\": 1.5}\n[1]\n7\n\n"
      "{\"step\": -1}\n{\"step\": 2, \"loss\": 1e999}\n{\"step\": 4}\n{\"step\": 5, \"lo");
  EXPECT_THAT(table.steps, ElementsAre(1, 4));
  EXPECT_EQ(table.damaged, 8);
  EXPECT_TRUE(table.is_torn);
}

TEST(MetricsTable, EmptyFilesHaveNoStep) {
  EXPECT_TRUE(table_of("").steps.empty());
  EXPECT_TRUE(table_of("{\"step\": 1").is_torn);
}

TEST(MetricsTable, RefusesOtherFiles) {
  EXPECT_THAT(message_of<InputError>([] { table_of("no run\n"); }),
              HasSubstr("metrics.jsonl: none of its 1 line(s) is an object of a step"));
  EXPECT_THAT(message_of<InputError>([] { read_metrics("/nowhere/metrics.jsonl"); }),
              HasSubstr("/nowhere/metrics.jsonl"));
}

TEST(MetricsTable, TakesNoMoreFieldsThanAPageCanShow) {
  std::string line = "{\"step\": 1";
  for (std::size_t i = 0; i < MetricsTable::most_series + 5; ++i) line += ", \"f" + std::to_string(i) + "\": 1";
  const MetricsTable table = table_of(line + "}\n");
  EXPECT_EQ(table.series.size(), MetricsTable::most_series);
  EXPECT_EQ(table.dropped, 5);
}

}  // namespace
}  // namespace zero
