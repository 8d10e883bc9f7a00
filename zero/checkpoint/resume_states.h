#pragma once
// Resuming: the states of the newest checkpoint that verifies are brought in.
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"
#include "zero/core/model_states.h"

namespace zero {

/// Brings the newest checkpoint that verifies into the model, whose frozen weights are loaded or in the checkpoint; each
/// that does not is told of in one line. InputError where some ranks see another one, or none within ten seconds. Sets
/// aside those that do not verify, and sweeps what was unfinished. InputError when none verifies. `control`: the ranks,
/// with the patience for one that reads for all. `remedy`: what the error tells to do. Collective.
RunPosition resume_states(
    ModelStates& model, CheckpointFolders& folders, FileCalls& calls, Communicator& control,
    const std::string& remedy = "see that each rank is shown this folder, or begin anew with --overwrite");

}  // namespace zero
