#pragma once
// Saving: from the states of all ranks to one complete folder, or to none.
#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"
#include "zero/core/model_states.h"

namespace zero {

struct SaveOptions {
  std::int64_t keep = 2;
  std::int64_t chunk_elements = ShardFormat::default_chunk_elements;
};

/// Writes the checkpoint of `position`. When it returns, the folder is complete and durable, older ones beyond `keep` are
/// gone, and ones of later steps are set aside; when it throws, it does on all ranks, the older ones are as they were, and what was begun lies in
/// the step's temporary folder. Each rank holds one chunk of states beside its own. `control`: the ranks,
/// with the patience for those that write for longer. Collective.
void save_checkpoint(ModelStates& model, const RunDescription& run, const RunPosition& position,
                     CheckpointFolders& folders, FileCalls& calls, Communicator& control,
                     const SaveOptions& options = {});

}  // namespace zero
