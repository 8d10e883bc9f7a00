#include "zero/train/records/trackio_database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/lookup.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/train/full_disk.h"

namespace zero {
namespace {

StepMetrics figures(std::int64_t number) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.time = 1764181811.123;
  metrics.loss = std::nan("");
  metrics.grad_norm = INFINITY;
  return metrics;
}

/// Another process's connection.
class Other {
 public:
  explicit Other(const std::string& path) { sqlite3_open(path.c_str(), &database_); }
  ~Other() { sqlite3_close(database_); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  /// The rows, with "|" between their values.
  std::vector<std::string> ask(const std::string& words) {
    std::vector<std::string> rows;
    const auto add = [](void* into, int columns, char** values, char**) {
      std::string row;
      for (int i = 0; i < columns; ++i) row += (i > 0 ? "|" : "") + std::string(values[i] ? values[i] : "");
      static_cast<std::vector<std::string>*>(into)->push_back(row);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database_, words.c_str(), add, &rows, nullptr), SQLITE_OK) << sqlite3_errmsg(database_);
    return rows;
  }
  std::vector<std::string> steps(const std::string& id) {
    return ask("SELECT step FROM metrics WHERE run_id = '" + id + "' ORDER BY id");
  }

 private:
  sqlite3* database_ = nullptr;
};

class TrackioFile : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = folder_ / "project.db";
  TrackioRun run_{"id", "name", R"({"training.steps":3})"};
  using Steps = std::vector<std::string>;
};

TEST_F(TrackioFile, HoldsRowsAndTheConfiguration) {
  TrackioDatabase database(path_, run_);
  database.write(figures(1));
  Other other(path_);
  EXPECT_EQ(other.ask("PRAGMA user_version"), Steps{"2"});
  EXPECT_EQ(other.ask("SELECT run_id, run_name, step, timestamp FROM metrics"),
            Steps{"id|name|1|2025-11-26T18:30:11.123000+00:00"});
  const auto row = nlohmann::json::parse(other.ask("SELECT metrics FROM metrics").front());
  EXPECT_EQ(row["train/loss"], "NaN");
  EXPECT_EQ(row["train/grad_norm"], "Infinity");
  EXPECT_EQ(row["train/lr"], 0);
  EXPECT_EQ(other.ask("SELECT run_id, run_name, config FROM configs"), Steps{R"(id|name|{"training.steps":3})"});
}

TEST_F(TrackioFile, HoldsSamplesAsATableOfTrackio) {
  TrackioDatabase database(path_, run_);
  database.write(figures(1), {{"God said", "let \xff be"}, {"And", ""}});
  database.write(figures(2));
  const std::vector<std::string> rows = Other(path_).ask("SELECT metrics FROM metrics ORDER BY step");
  const auto table = nlohmann::json::parse(rows[0])["samples"];
  EXPECT_EQ(table["_type"], "trackio.table");
  EXPECT_EQ(table["_value"][0]["prompt"], "God said");
  EXPECT_EQ(table["_value"][0]["continuation"], "let \xEF\xBF\xBD be");
  EXPECT_EQ(table["_value"].size(), 2);
  EXPECT_FALSE(nlohmann::json::parse(rows[1]).contains("samples"));
}

TEST_F(TrackioFile, ARunThatGoesBackLosesItsLaterStepsAlone) {
  TrackioDatabase another(path_, {"other", "name", "{}"});
  another.write(figures(9));
  TrackioDatabase database(path_, run_);
  for (int i = 1; i <= 4; ++i) database.write(figures(i));
  database.cut_after(2);
  database.write(figures(3));
  EXPECT_EQ(database.steps(), (std::set<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(Other(path_).steps("id"), (Steps{"1", "2", "3"}));
  EXPECT_EQ(Other(path_).steps("other"), Steps{"9"});
}

TEST_F(TrackioFile, ALockDelaysStepsAndHoldsNobodyUp) {
  TrackioDatabase database(path_, run_);
  for (int i = 1; i <= 3; ++i) database.write(figures(i));
  Other other(path_);
  other.ask("BEGIN EXCLUSIVE");
  const auto begin = std::chrono::steady_clock::now();
  database.cut_after(2);
  for (int i = 3; i < 100; ++i) database.write(figures(i));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));  // 100 locks of 100 ms would take ten
  EXPECT_EQ(other.steps("id"), (Steps{"1", "2", "3"}));
  other.ask("COMMIT");
  database.write(figures(100));
  EXPECT_EQ(other.steps("id").size(), 100);
}

TEST_F(TrackioFile, AnotherProcesssLockAtTheStartDelaysAllOfIt) {
  Other other(path_);
  other.ask("CREATE TABLE something (x); BEGIN EXCLUSIVE");
  TrackioDatabase database(path_, run_);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= 9; ++i) database.write(figures(i));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(database.steps(), std::nullopt);
  other.ask("COMMIT");
  database.write(figures(10));
  EXPECT_EQ(other.steps("id").size(), 10);
}

TEST_F(TrackioFile, AFullDiskDelaysSteps) {
  TrackioDatabase database(path_, run_);
  database.write(figures(1));
  {
    const testing::FullDisk full(64);
    for (int i = 2; i <= 4; ++i) database.write(figures(i));
  }
  EXPECT_EQ(Other(path_).steps("id"), Steps{"1"});
  database.write(figures(5));
  EXPECT_EQ(Other(path_).steps("id"), (Steps{"1", "2", "3", "4", "5"}));
}

TEST_F(TrackioFile, WhatWaitsIsWrittenAtTheEnd) {
  {
    Other other(path_);
    TrackioDatabase database(path_, run_);
    other.ask("BEGIN EXCLUSIVE");
    database.write(figures(1));
    other.ask("COMMIT");
  }
  EXPECT_EQ(Other(path_).steps("id"), Steps{"1"});
}

TEST_F(TrackioFile, OtherFilesAreRefused) {
  folder_.write("text.db", std::string(4096, 'x'));
  EXPECT_THROW(TrackioDatabase::require_usable(folder_ / "text.db"), InputError);
  EXPECT_THROW(TrackioDatabase(folder_ / "text.db", run_), Error);
  Other(path_).ask(
      "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)");
  EXPECT_THROW(TrackioDatabase::require_usable(path_), InputError);  // as before trackio 0.24
  EXPECT_THROW(TrackioDatabase(path_, run_), Error);
  EXPECT_THROW(TrackioDatabase::require_usable(folder_.path()), InputError);
  EXPECT_THROW(TrackioDatabase(folder_ / "none/project.db", run_), Error);
}

TEST_F(TrackioFile, ACheckChangesNothingAndWaitsForNobody) {
  TrackioDatabase::require_usable(path_);
  EXPECT_TRUE(names_in(folder_.path()).empty());
  folder_.write("empty.db", "");
  TrackioDatabase::require_usable(folder_ / "empty.db");
  EXPECT_EQ(std::filesystem::file_size(folder_ / "empty.db"), 0);
  { TrackioDatabase(path_, run_).write(figures(1)); }
  const std::vector<std::string> names = names_in(folder_.path());
  TrackioDatabase::require_usable(path_);
  EXPECT_EQ(names_in(folder_.path()), names);
  Other other(path_);
  other.ask("BEGIN EXCLUSIVE");
  const auto begin = std::chrono::steady_clock::now();
  TrackioDatabase::require_usable(path_);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace zero
