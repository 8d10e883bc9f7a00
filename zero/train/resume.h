#pragma once
// Resuming: which checkpoint a run goes on from.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/save_checkpoint.h"
#include "zero/config/config.h"
#include "zero/output/output_dir.h"
#include "zero/train/metrics.h"
#include "zero/train/resume_settings.h"

namespace zero {

struct ResumeRequest {
  const Config& config;
  RunDescription now;                 // what the run is, on rank 0
  std::vector<std::string> accepted;  // settings that may differ
};

/// The step of the newest checkpoint; none, with a line in the log, where the run died before its first step. Refuses
/// (InputError) what cannot be resumed: settings that differ, a run that has trained and has no checkpoint, only damaged
/// ones, and what cannot be read. Reads manifests and records only. Collective.
std::optional<std::int64_t> check_resume(const ResumeRequest& request, CheckpointFolders& folders, FileCalls& calls,
                                         Communicator& communicator);

/// Where a run writes, and what rank 0 does there before the first step.
struct RunFolder {
  std::string path;
  FormerRun former = FormerRun::refused;
  std::vector<ReadPath> reads;  // what the run must not lose
  std::string configuration;    // of config.toml
  std::string id = {};          // of a run that begins
};

/// Prepares the folder and opens the records of a run that stands at `position`. InputError where nothing
/// is changed yet, else Error; of rank 0 alone.
std::unique_ptr<MetricsWriter> open_metrics(const RunFolder& folder, const RunPosition& position,
                                            const std::shared_ptr<FileCalls>& calls);

/// The validation that a checkpoint owes is owed no more where the records, which rank 0 has, hold the line of its step:
/// the run ended after it. Collective.
void check_owed_validation(RunPosition& position, const MetricsWriter* records, Communicator& communicator);

}  // namespace zero
