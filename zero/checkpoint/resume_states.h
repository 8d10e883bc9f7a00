#pragma once
// Resuming: restores the states of the newest checkpoint that verifies.
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// Restores the newest checkpoint that verifies. Frozen weights must be loaded already or lie in the checkpoint. A
/// damaged checkpoint is logged and skipped. Throws InputError if none verifies, or if a folder or file is unreadable.
/// Also throws if some ranks see another checkpoint or none within ten seconds; nothing is renamed then. On success,
/// sets damaged checkpoints aside and removes unfinished ones. If a checkpoint is refused, also by take_values(), the
/// models are unchanged; if it is damaged, they may have changed. `control`: all ranks, with a timeout for one rank
/// that reads for all. `remedy`: the end of the error if none verifies. Collective.
RunPosition resume_states(
    const CheckpointModels& models, CheckpointFolders& folders, FileCalls& calls, Communicator& control,
    const std::string& remedy = "see that each rank is shown this folder, or begin anew with --overwrite");

}  // namespace zero
