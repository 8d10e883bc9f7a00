#include "zero/train/records/trackio_database.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/train/records/figure_tags.h"

namespace zero {
namespace {

constexpr int longest_wait = 3000, usual_wait = 100;  // milliseconds for a lock

// The tables and indexes of schema version 2 that hold a run.
constexpr const char* tables =
    "CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
    "timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL, log_id TEXT, "
    "space_id TEXT);"
    "CREATE TABLE IF NOT EXISTS configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
    "run_name TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));"
    "CREATE TABLE IF NOT EXISTS system_metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
    "timestamp TEXT NOT NULL, run_name TEXT NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT);"
    "CREATE INDEX IF NOT EXISTS idx_metrics_run_step ON metrics(run_id, step);"
    "CREATE INDEX IF NOT EXISTS idx_metrics_run_timestamp ON metrics(run_id, timestamp);"
    "CREATE INDEX IF NOT EXISTS idx_configs_run_name ON configs(run_name);"
    "CREATE INDEX IF NOT EXISTS idx_system_metrics_run_timestamp ON system_metrics(run_id, timestamp);"
    "PRAGMA user_version = 2;";

constexpr const char* put_row =
    "INSERT INTO metrics (timestamp, run_id, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)";
constexpr const char* put_configuration =
    "INSERT OR REPLACE INTO configs (run_id, run_name, config, created_at) VALUES (?, ?, ?, ?)";
constexpr const char* cut_rows = "DELETE FROM metrics WHERE run_id = ? AND step > ?";
constexpr const char* find_table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'metrics'";
constexpr const char* find_steps = "SELECT step FROM metrics WHERE run_id = ?";

struct Failure {
  int code;  // of SQLite
  std::string why;

  /// Another process has the lock, or the disk is full or gives no answer.
  bool may_pass() const {
    const int kind = code & 0xFF;
    return kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_FULL || kind == SQLITE_IOERR;
  }
};

/// Throws Failure unless the call was successful.
void check(sqlite3* database, int code) {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
    throw Failure{code, database ? sqlite3_errmsg(database) : sqlite3_errstr(code)};
}

std::string why_refused(const std::string& path, const Failure& failure) {
  return text(path, ": cannot be opened as a database of trackio 0.24 or later: ", failure.why,
              "; move the file away, name another metrics.trackio, or leave it empty");
}

std::string iso_time(double seconds) {
  const std::int64_t micros = std::llround(seconds * 1e6);
  const auto time = std::time_t(micros / 1'000'000);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return text(std::put_time(&parts, "%Y-%m-%dT%H:%M:%S"), '.', std::setfill('0'), std::setw(6), micros % 1'000'000,
              "+00:00");
}

double unix_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// JSON has no words for numbers that are not finite. These are trackio's.
nlohmann::ordered_json value_of(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number;
}

/// A table, as trackio.Table stores itself among the figures of a step.
nlohmann::ordered_json trackio_table_of(const std::vector<Sample>& samples) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Sample& sample : samples) rows.push_back({{"prompt", sample.prompt}, {"continuation", sample.text}});
  return {{"_type", "trackio.table"}, {"_value", std::move(rows)}};
}

void set_value(sqlite3_stmt* statement, int place, const std::string& word) {
  sqlite3_bind_text(statement, place, word.data(), int(word.size()), SQLITE_TRANSIENT);
}
void set_value(sqlite3_stmt* statement, int place, std::int64_t number) {
  sqlite3_bind_int64(statement, place, number);
}

/// Runs a statement that gives no rows, with these values.
template <class... Values>
void run_once(sqlite3_stmt* statement, const Values&... values) {
  int place = 0;
  (set_value(statement, ++place, values), ...);
  sqlite3_step(statement);
  check(sqlite3_db_handle(statement), sqlite3_reset(statement));
}

}  // namespace

void TrackioDatabase::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }
void TrackioDatabase::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void TrackioDatabase::require_usable(const std::string& path) {
  if (!is_there(path)) return;
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, Close> guard(opened);
  const auto compiled = [&](const char* words) {
    sqlite3_stmt* made = nullptr;
    check(opened, sqlite3_prepare_v2(opened, words, -1, &made, nullptr));
    return Statement(made);
  };
  try {
    check(opened, code);
    const Statement find = compiled(find_table);
    const int found = sqlite3_step(find.get());
    check(opened, found);
    if (sqlite3_db_readonly(opened, "main") == 1) throw Failure{SQLITE_READONLY, "it may not be written to"};
    if (found == SQLITE_ROW)
      for (const char* words : {put_configuration, cut_rows, put_row}) compiled(words);
  } catch (const Failure& failure) {
    if (!failure.may_pass()) throw InputError(why_refused(path, failure));
  }
}

TrackioDatabase::TrackioDatabase(std::string path, TrackioRun run) : path_(std::move(path)), run_(std::move(run)) {
  try {
    transact();
  } catch (const Failure& failure) {
    if (!failure.may_pass()) throw Error(why_refused(path_, failure));
    warn_once(failure.why);
  }
}

TrackioDatabase::~TrackioDatabase() {
  if (waiting_.empty() && !uncut_) return;
  failed_ = false;  // waits once more
  try {
    if (database_) sqlite3_busy_timeout(database_.get(), longest_wait);
    transact();
  } catch (const Failure& failure) {
    log_warning(path_, ": the last ", waiting_.size(), " step(s) could not be written: ", failure.why,
                "; metrics.jsonl holds them, and --resume adds them");
  }
}

void TrackioDatabase::open() {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<sqlite3, Close> guard(opened);
  check(opened, code);
  // As trackio sets them: readers and the run do not wait for each other, and a loss of power costs the last steps.
  sqlite3_busy_timeout(opened, failed_ ? 0 : longest_wait);
  check(opened,
        sqlite3_exec(opened, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", nullptr, nullptr, nullptr));
  database_ = std::move(guard);
}

void TrackioDatabase::execute(const char* words) {
  check(database_.get(), sqlite3_exec(database_.get(), words, nullptr, nullptr, nullptr));
}

TrackioDatabase::Statement TrackioDatabase::prepare(const char* words) {
  sqlite3_stmt* made = nullptr;
  check(database_.get(), sqlite3_prepare_v2(database_.get(), words, -1, &made, nullptr));
  return Statement(made);
}

void TrackioDatabase::make_tables() {
  const Statement find = prepare(find_table);
  const int found = sqlite3_step(find.get());
  check(database_.get(), found);
  if (found == SQLITE_DONE) execute(tables);
  run_once(prepare(put_configuration).get(), run_.id, run_.name, run_.configuration, iso_time(unix_now()));
}

/// Within a transaction.
void TrackioDatabase::change() {
  if (!has_tables_) make_tables();
  if (uncut_) run_once(prepare(cut_rows).get(), run_.id, *uncut_);
  const Statement put = prepare(put_row);
  for (const Row& row : waiting_) run_once(put.get(), row.time, run_.id, run_.name, row.step, row.figures);
}

void TrackioDatabase::transact() {
  if (!database_) open();
  execute("BEGIN IMMEDIATE");
  try {
    change();
    execute("COMMIT");
  } catch (const Failure&) {
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);  // a failure may have done it
    throw;
  }
  has_tables_ = true;
  uncut_.reset();
  waiting_.clear();
  sqlite3_busy_timeout(database_.get(), usual_wait);
}

void TrackioDatabase::flush() {
  try {
    transact();
    if (std::exchange(failed_, false)) log_info(path_, " can be written again; no step is missing");
  } catch (const Failure& failure) {
    warn_once(failure.why);
  }
}

void TrackioDatabase::warn_once(const std::string& why) {
  if (database_) sqlite3_busy_timeout(database_.get(), 0);
  if (!std::exchange(failed_, true))
    log_warning(path_, ": cannot be written: ", why, "; training goes on, and its steps wait in memory");
}

std::optional<std::set<std::int64_t>> TrackioDatabase::steps() {
  if (!has_tables_) return std::nullopt;
  try {
    std::set<std::int64_t> found;
    const Statement find = prepare(find_steps);
    set_value(find.get(), 1, run_.id);
    for (int code; (code = sqlite3_step(find.get())) != SQLITE_DONE; check(database_.get(), code))
      if (code == SQLITE_ROW) found.insert(sqlite3_column_int64(find.get(), 0));
    return found;
  } catch (const Failure&) {
    return std::nullopt;
  }
}

void TrackioDatabase::cut_after(std::int64_t last_step) {
  std::erase_if(waiting_, [&](const Row& row) { return row.step > last_step; });
  uncut_ = std::min(uncut_.value_or(last_step), last_step);
  flush();
}

void TrackioDatabase::write(const StepMetrics& metrics, const std::vector<Sample>& samples) {
  nlohmann::ordered_json figures = nlohmann::ordered_json::object();
  for (const auto& [tag, number] : tagged_figures(metrics)) figures[tag] = value_of(number);
  if (!samples.empty()) figures["samples"] = trackio_table_of(samples);
  waiting_.push_back({metrics.step, iso_time(metrics.time.value_or(unix_now())),
                      figures.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
  flush();
}

}  // namespace zero
