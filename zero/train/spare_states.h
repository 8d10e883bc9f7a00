#pragma once
// Spare states: where a run saves what it has trained when its own disk is full, and how the run that goes on finds it.
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"

namespace zero {

/// Directories for states that find no room in job.output_dir, best first: offload.nvme_dir, the one that the run was
/// started in, and the system's for temporary files.
std::vector<std::string> spare_places(const Config& config);

/// Moves the newest checkpoint that this run has in spare places to `home` (zero/checkpoint/spare_checkpoints.h). `run`:
/// rank 0's description of the run, whose id its checkpoints have; their job.output_dir is this one, or is there no more.
/// InputError on all ranks where that
/// cannot be done. Collective.
void bring_home_spare_states(const Config& config, const RunDescription& run, CheckpointFolders& home, FileCalls& calls,
                             Communicator& control);

}  // namespace zero
