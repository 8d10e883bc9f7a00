#pragma once
// Resuming: the states of the newest checkpoint that verifies are brought in.
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/checkpoint_models.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// Brings the newest checkpoint that verifies into the models, whose frozen weights are loaded or in the checkpoint. One
/// whose contents are damaged is logged and passed over. InputError when none verifies, when a folder or file cannot be
/// read, and when some ranks see another checkpoint, or none within ten seconds: nothing is renamed then. Afterwards the
/// damaged ones are set aside, and unfinished ones are removed. A checkpoint that is refused, by take_values() too, leaves
/// the models as they were; damage may not. `control`: the ranks, with the patience for one that reads for all. `remedy`:
/// the end of the error when none verifies. Collective.
RunPosition resume_states(
    const CheckpointModels& models, CheckpointFolders& folders, FileCalls& calls, Communicator& control,
    const std::string& remedy = "see that each rank is shown this folder, or begin anew with --overwrite");

}  // namespace zero
