#pragma once
// Resuming: finds the checkpoint from which a run continues.
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
  RunDescription now;                 // description of the resumed run, on rank 0
  std::vector<std::string> accepted;  // settings that may differ
};

/// Returns the step of the newest checkpoint. If the run died before its first step, logs that and returns none. Throws
/// InputError for settings that differ, and for a checkpoint that cannot be read. Also throws for a run that has
/// trained but has no checkpoint, or only damaged ones. Reads only manifests and records. Collective.
std::optional<std::int64_t> check_resume(const ResumeRequest& request, CheckpointFolders& folders, FileCalls& calls,
                                         Communicator& communicator);

/// Compares a run that is to be resumed with its newest checkpoint, whose step it returns; none without a checkpoint.
/// Throws InputError for settings that differ. Changes nothing. Call it only on rank 0.
std::optional<std::int64_t> compare_with_checkpoint(const ResumeRequest& request, const CheckpointFolders& folders,
                                                    FileCalls& calls);

/// The folder to which a run writes, and its contents before the first step. Only rank 0 uses it.
struct RunFolder {
  std::string path;
  FormerRun former = FormerRun::refused;
  std::vector<ReadPath> reads;  // files that the run must not remove
  std::string configuration;    // contents of config.toml
  std::string id = {};          // id of a new run
};

/// Prepares the folder and opens the records of a run at `position`. Call it only on rank 0. Throws InputError before
/// the first change, and Error after it.
std::unique_ptr<MetricsWriter> open_metrics(const RunFolder& folder, const RunPosition& position,
                                            const std::shared_ptr<FileCalls>& calls);

/// Clears a checkpoint's pending validation if rank 0's records already have the line of its step. The run then ended
/// after that validation. Collective.
void check_owed_validation(RunPosition& position, const MetricsWriter* records, Communicator& communicator);

}  // namespace zero
