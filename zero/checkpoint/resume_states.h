#pragma once
// Resuming: restores the states of the newest checkpoint that passes verification.
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// Restores the newest checkpoint that passes verification. Frozen weights must be loaded already or be in the
/// checkpoint. A damaged checkpoint is logged and skipped. Throws InputError if no checkpoint passes, or if a folder or
/// file is unreadable. Also throws if, after ten seconds, some ranks still see another checkpoint or none; nothing is
/// renamed then. On success, sets damaged checkpoints aside and removes unfinished ones. If a checkpoint is rejected,
/// even by take_values(), the models are unchanged. If a checkpoint is damaged, the models may have changed. `control`:
/// a communicator of all ranks, with a timeout for one rank that reads for all. `remedy`: ends the message if no
/// checkpoint passes. Collective.
RunPosition resume_states(
    const CheckpointModels& models, CheckpointFolders& folders, FileCalls& calls, Communicator& control,
    const std::string& remedy = "see that each rank is shown this folder, or begin anew with --overwrite");

}  // namespace zero
