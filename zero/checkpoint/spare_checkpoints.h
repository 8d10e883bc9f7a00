#pragma once
// Spare checkpoints: states saved elsewhere, in folders zero-checkpoint-XXXXXX, when the run's own disk had no space
// left. Anybody may write to such places (/tmp), so only this user's files are opened. Folders must not be writable for
// group and others, and files must be regular files, not links.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// The run that saved a checkpoint. `unknown`: it may be this run or a copy of it.
enum class Owner : std::uint8_t { this_run, another_run, unknown };
using OwnerOf = std::function<Owner(const RunDescription&)>;

/// Creates a folder for a spare checkpoint in `place`. Returns none if that fails, or if the folder would belong to
/// another user, as on a file server that maps root. Throws UnreadableError if that cannot be determined.
std::optional<std::string> make_spare_folder(const std::string& place, FileCalls& calls);

/// Returns the folder zero-checkpoint-XXXXXX with a run's newest spare checkpoint if that is newer than `step`; empty:
/// there is none. Changes nothing.
std::string newest_spare_after(std::int64_t step, const std::vector<std::string>& places, const OwnerOf& owner_of,
                               FileCalls& calls);

/// Copies a run's newest spare checkpoint to `home`, verifies the copy and makes it durable. Copies nothing if `home`
/// has an intact checkpoint that is at least as new. Then removes spares that are not newer than the newest intact
/// checkpoint in `home`. A spare that fails verification or has an unknown owner stays, with a warning, and the next
/// older one is tried. Throws InputError if the system reports an error or the disk is full; nothing is removed then.
/// Call it from one process at a time.
void bring_home(CheckpointFolders& home, const std::vector<std::string>& places, const OwnerOf& owner_of,
                FileCalls& calls);

}  // namespace zero
