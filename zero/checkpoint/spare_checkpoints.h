#pragma once
// Spare checkpoints: states of a run that found no room in its own folder, each in a folder zero-checkpoint-XXXXXX of
// another place. Such places (/tmp) are open to everybody, so only what belongs to this user is opened: folders that no
// other user may write to and regular files, never a link.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// Whether a checkpoint of this description is one of the run that looks for its own.
using IsOfRun = std::function<bool(const RunDescription&)>;

/// A new folder for a spare checkpoint in `place`; none where it cannot be made.
std::optional<std::string> make_spare_folder(const std::string& place);

/// Copies the newest spare checkpoint of a run to `home` where no checkpoint there is as new and whole, verifies the copy,
/// makes it durable, and removes the spare ones that are no newer than what is whole at home by then. One that does not
/// verify stays where it is, with a warning, and the one before it is taken. InputError where the system gives no answer,
/// and where the copy finds no room: nothing is removed then. For one process at a time.
void bring_home(CheckpointFolders& home, const std::vector<std::string>& places, const IsOfRun& is_of_run,
                FileCalls& calls);

}  // namespace zero
