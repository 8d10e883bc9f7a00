#pragma once
// TrackioDatabase: a run's rows in the SQLite file of a trackio project. Source of the schema:
// trackio/sqlite_storage.py of trackio 0.43, schema version 2 (metrics, configs, system_metrics), and of tables of
// texts: trackio/table.py. When trackio opens the file, it adds the other tables that it needs.
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "zero/output/sample_lines.h"
#include "zero/train/metrics.h"

struct sqlite3;
struct sqlite3_stmt;

namespace zero {

struct TrackioRun {
  std::string id;             // unique in the project
  std::string name;           // for people
  std::string configuration;  // a JSON object
};

/// Writes each step at once, in a transaction of its own. If a step cannot be written (locked database, full disk),
/// logs one warning, and training continues. That step and later ones wait in memory until all can be written. A step
/// waits at most 100 ms for a lock, and not at all after a failure. The start and the end wait at most 3 s.
class TrackioDatabase {
 public:
  /// Throws InputError if the file at `path` exists and the constructor would refuse it. Changes no row and no table.
  static void require_usable(const std::string& path);
  /// Opens the file at `path`, or makes it. Throws Error if the file is not a database of trackio 0.24 or later, or may
  /// not be written to. If the file is locked or its disk is full, rows wait in memory.
  TrackioDatabase(std::string path, TrackioRun run);
  TrackioDatabase(const TrackioDatabase&) = delete;
  TrackioDatabase& operator=(const TrackioDatabase&) = delete;
  /// Tries once more to write the waiting rows, and warns if that fails.
  ~TrackioDatabase();

  /// The steps of the run that the file holds; none if the file cannot be read.
  std::optional<std::set<std::int64_t>> steps();
  /// Removes rows of later steps.
  void cut_after(std::int64_t last_step);
  /// Adds a step, with the samples of its validation as one of trackio's tables.
  void write(const StepMetrics& metrics, const std::vector<Sample>& samples = {});

 private:
  struct Row {
    std::int64_t step = 0;
    std::string time, figures;  // ISO 8601 in UTC, a JSON object
  };
  struct Close {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  // These throw a Failure of SQLite (in the source).
  void open();
  void execute(const char* words);
  Statement prepare(const char* words);
  void make_tables();
  void change();
  void transact();

  /// Tries to write the waiting rows.
  void flush();
  void warn_once(const std::string& why);

  std::string path_;
  TrackioRun run_;
  std::unique_ptr<sqlite3, Close> database_;
  bool has_tables_ = false;
  std::optional<std::int64_t> uncut_;  // rows after this step are still in the file and must be removed
  std::deque<Row> waiting_;
  bool failed_ = false;  // writing has failed, and a warning was logged
};

}  // namespace zero
