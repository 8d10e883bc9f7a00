#include "zero/train/observers/trackio_rows.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/make_folder.h"
#include "base/log.h"
#include "zero/config/config_keys.h"
#include "zero/output/run_mark.h"

namespace zero {
namespace {

/// {"section.key": value}.
std::string json_of(Config config) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const ConfigKey& key : config_keys()) {
    if (!has_section(config, key.section)) continue;
    if (const std::optional<Value> value = read_field(key.field(config)))
      std::visit([&](const auto& given) { object[key.full_name()] = given; }, *value);
  }
  return object.dump();
}

/// The folder where trackio looks for databases; empty: a run has one of its own.
std::string shared_folder() {
  const char* chosen = std::getenv("TRACKIO_DIR");
  return chosen ? chosen : "";
}

std::string folder_of(const Config& config) {
  const std::string shared = shared_folder();
  return shared.empty() ? config.job.output_dir + "/trackio" : shared;
}

std::string database_of(const Config& config) { return folder_of(config) + "/" + config.metrics.trackio + ".db"; }

/// The run is called after its directory.
TrackioRun run_of(const Config& config, FileCalls& calls) {
  namespace fs = std::filesystem;
  const fs::path place = fs::absolute(config.job.output_dir).lexically_normal();
  const std::string name = (place.has_filename() ? place : place.parent_path()).filename().string();
  const std::string id = run_id_of(config.job.output_dir, calls);
  return {id.empty() ? name : id, name, json_of(config)};
}

}  // namespace

void check_trackio(const Config& config, FormerRun former) {
  if (config.metrics.trackio.empty() || (former == FormerRun::overwritten && shared_folder().empty())) return;
  try {
    const std::string folder = folder_of(config);
    if (is_there(folder) && !is_folder(folder))
      throw InputError(folder + ": must be a folder, which holds the database: move the file away, or set TRACKIO_DIR");
    TrackioDatabase::require_usable(database_of(config));
  } catch (const InputError& error) {
    throw InputError(text(config.where("metrics.trackio"), ": ", error.what()));
  }
}

TrackioRows::TrackioRows(const Config& config, const StepLoop& loop, RunRecords& records)
    : config_(config), loop_(loop), records_(records) {
  if (!records.metrics || config.metrics.trackio.empty()) return;
  FileCalls calls;
  make_folder(calls, folder_of(config));
  database_.emplace(database_of(config), run_of(config, calls));
}

void TrackioRows::resumed(const RunPosition& position) {
  resumed_ = true;
  if (!database_) return;
  database_->cut_after(position.steps);
  try {
    const auto held = database_->steps();
    if (!held) return;  // a warning has said so
    SamplesByStep samples = samples_after(samples_path(config_.job.output_dir), 0);
    records_.metrics->visit_after(0, [&](const StepMetrics& line) {
      if (!held->contains(line.step)) database_->write(line, samples[line.step]);
    });
  } catch (const Error& error) {
    log_warning("trackio may miss steps up to ", position.steps, ": ", error.what());
  }
}

void TrackioRows::run_begins() {
  if (database_ && !resumed_) database_->cut_after(0);
}

void TrackioRows::step_finished(const Step& step) {
  if (database_ && step.is_logged(config_.metrics.log_interval, loop_.steps()))
    database_->write(step.metrics, step.samples);
}

void TrackioRows::went_back(const RunPosition& position) {
  if (database_) database_->cut_after(position.steps);
}

}  // namespace zero
