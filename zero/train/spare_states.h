#pragma once
// Spare states: the places for a run's states if its own disk is full, and their way back when the run is resumed.
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"

namespace zero {

/// Directories for states that have no room in job.output_dir, best first: offload.nvme_dir, the working directory at
/// the start, and the system's for temporary files.
std::vector<std::string> spare_places(const Config& config);

/// Moves this run's newest checkpoint in spare places to `home` (zero/checkpoint/spare_checkpoints.h). `run`: rank 0's
/// description of the run. Its checkpoints have its id, and their job.output_dir is this one or no longer exists.
/// Throws InputError on all ranks if that is impossible. Collective.
void bring_home_spare_states(const Config& config, const RunDescription& run, CheckpointFolders& home, FileCalls& calls,
                             Communicator& control);

}  // namespace zero
