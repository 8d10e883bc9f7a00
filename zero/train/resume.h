#pragma once
// Resuming: finds the checkpoint that a run continues from.
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
  RunDescription now;                 // description of the run, on rank 0
  std::vector<std::string> accepted;  // settings that may differ
};

/// Returns the step of the newest checkpoint; none, with a line in the log, if the run died before its first step.
/// Throws InputError for settings that differ, and for a checkpoint that cannot be read. Also throws for a run that has
/// trained but has no checkpoint, or only damaged ones. Reads manifests and records only. Collective.
std::optional<std::int64_t> check_resume(const ResumeRequest& request, CheckpointFolders& folders, FileCalls& calls,
                                         Communicator& communicator);

/// The folder that a run writes to, and its contents before the first step. For rank 0.
struct RunFolder {
  std::string path;
  FormerRun former = FormerRun::refused;
  std::vector<ReadPath> reads;  // files that the run must not remove
  std::string configuration;    // contents of config.toml
  std::string id = {};          // of a new run
};

/// Prepares the folder and opens the records of a run that stands at `position`. Call it on rank 0 alone. Throws
/// InputError while nothing has been changed, and Error after that.
std::unique_ptr<MetricsWriter> open_metrics(const RunFolder& folder, const RunPosition& position,
                                            const std::shared_ptr<FileCalls>& calls);

/// Clears the validation that a checkpoint still owes if rank 0's records hold the line of its step: the run ended
/// after it. Collective.
void check_owed_validation(RunPosition& position, const MetricsWriter* records, Communicator& communicator);

}  // namespace zero
