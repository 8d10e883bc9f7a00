#pragma once
// TrackioRows: writes the figures and samples of logged steps to the database of a trackio project.
#include <optional>

#include "zero/output/output_dir.h"
#include "zero/train/records/trackio_database.h"
#include "zero/train/run_records.h"
#include "zero/train/step_loop.h"

namespace zero {

/// Throws InputError if metrics.trackio names a database that exists and cannot take the rows of a run. A run that
/// overwrites an earlier one removes the databases in its own directory first. Changes nothing.
void check_trackio(const Config& config, FormerRun former);

/// Runs after MetricsRecords: it copies from metrics.jsonl the steps that an earlier start failed to write here.
class TrackioRows final : public StepObserver {
 public:
  /// Writes only on the rank with records, and only if metrics.trackio names a project. Throws Error as TrackioDatabase
  /// does. The arguments must outlive the observer.
  TrackioRows(const Config& config, const StepLoop& loop, RunRecords& records);

  void resumed(const RunPosition& position) override;
  void run_begins() override;
  void step_finished(const Step& step) override;
  void went_back(const RunPosition& position) override;

 private:
  const Config& config_;
  const StepLoop& loop_;
  RunRecords& records_;
  std::optional<TrackioDatabase> database_;
  bool resumed_ = false;
};

}  // namespace zero
