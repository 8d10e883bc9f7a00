#pragma once
// Resuming: which checkpoint a run goes on from.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/save_checkpoint.h"
#include "zero/config/config.h"
#include "zero/train/metrics.h"
#include "zero/train/resume_settings.h"

namespace zero {

struct ResumeRequest {
  const Config& config;
  RunDescription now;                 // what the run is, on rank 0
  std::vector<std::string> accepted;  // settings that may differ
};

/// The step of the newest checkpoint; none, with a line in the log, where the run died before its first. Refuses
/// (InputError) what cannot be resumed: settings that differ, a finished run without checkpoints, only damaged ones.
/// Reads manifests only. Collective.
std::optional<std::int64_t> check_resume(const ResumeRequest& request, const CheckpointFolders& folders,
                                         FileCalls& calls, Communicator& communicator);

/// The validation that a checkpoint owes is owed no more where the records, which rank 0 has, hold the line of its step:
/// the run ended after it. Collective.
void check_owed_validation(RunPosition& position, const MetricsWriter* records, Communicator& communicator);

}  // namespace zero
