#pragma once
// Spare checkpoints: states of a run that found no room in its own folder, each in a folder zero-checkpoint-XXXXXX of
// another place. Such places (/tmp) are open to everybody, so only what belongs to this user is opened: folders that
// neither group nor others may write to and regular files, never a link.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// Which run has saved a checkpoint. Unknown: the run that looks for its own, or a copy of it.
enum class Owner : std::uint8_t { this_run, another_run, unknown };
using OwnerOf = std::function<Owner(const RunDescription&)>;

/// A new folder for a spare checkpoint in `place`; none where it cannot be made, or would not be taken for this user's
/// own later (a file server that makes another user of root). UnreadableError where that cannot be known.
std::optional<std::string> make_spare_folder(const std::string& place, FileCalls& calls);

/// Copies the newest spare checkpoint of a run to `home` where no checkpoint there is as new and whole, verifies the copy,
/// makes it durable, and removes the spare ones that are no newer than what is whole at home by then. One that does not
/// verify stays where it is, with a warning, and the one before it is taken; so does one whose owner is unknown. InputError where the system gives no answer,
/// and where the copy finds no room: nothing is removed then. For one process at a time.
void bring_home(CheckpointFolders& home, const std::vector<std::string>& places, const OwnerOf& owner_of,
                FileCalls& calls);

}  // namespace zero
