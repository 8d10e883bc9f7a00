#pragma once
// Spare states: places for a run's states if its own disk is full. When the run is resumed, the states are moved back.
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"
#include "zero/config/config.h"

namespace zero {

/// Returns directories for states that do not fit into job.output_dir, best first: offload.nvme_dir, the working
/// directory at the start, and the system's temporary directory.
std::vector<std::string> spare_places(const Config& config);

/// Moves this run's newest checkpoint in spare places to `home` (zero/checkpoint/spare_checkpoints.h). `run`: rank 0's
/// description of the run. A checkpoint belongs to the run if it has the run's id, and if its job.output_dir is this
/// one or no longer exists. Throws InputError on all ranks if the checkpoint cannot be moved. Collective.
void bring_home_spare_states(const Config& config, const RunDescription& run, CheckpointFolders& home, FileCalls& calls,
                             Communicator& control);

/// Returns the folder of the checkpoint that bring_home_spare_states() would move to a home whose newest intact
/// checkpoint is of `step`; empty: there is none. Changes nothing. Call it only on rank 0.
std::string spare_folder_after(std::int64_t step, const Config& config, const RunDescription& run, FileCalls& calls);

}  // namespace zero
