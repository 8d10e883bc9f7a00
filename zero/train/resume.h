#pragma once
// Resuming: finds the checkpoint from which a run continues.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/newest_checkpoint.h"
#include "zero/checkpoint/save_checkpoint.h"
#include "zero/config/config.h"
#include "zero/output/output_dir.h"
#include "zero/train/metrics.h"
#include "zero/train/resume_settings.h"

namespace zero {

struct ResumeRequest {
  const Config& config;
  RunDescription now;                     // description of the resumed run, on rank 0
  std::vector<std::string> accepted;      // settings that may differ
  std::vector<std::string> unknown = {};  // settings that are not known here, and are not compared
};

/// The checkpoint from which a run goes on.
struct Resumption {
  std::optional<std::int64_t> step;  // none: the run died before its first checkpoint, and begins at step 0
  bool differs = false;              // in accepted settings
};

/// Compares the run with the newest checkpoint of `root`. Throws InputError for settings that differ, and if no
/// checkpoint is whole. Also throws for a run that has trained but has no checkpoint. Reads records, and changes
/// nothing. Call it only on rank 0.
Resumption find_resumption(const ResumeRequest& request, const NewestCheckpoint& newest, const std::string& root,
                           FileCalls& calls);

/// Does the same for a run that begins now, after it has given checkpoints back their names. Returns the step.
/// Collective.
std::optional<std::int64_t> check_resume(const ResumeRequest& request, CheckpointFolders& folders, FileCalls& calls,
                                         Communicator& communicator);

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
