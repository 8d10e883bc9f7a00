#pragma once
// Spare checkpoints: states saved elsewhere, in folders zero-checkpoint-XXXXXX, when the run's own folder had no room.
// Everybody may write to such places (/tmp). Therefore only this user's files are opened. These are folders that group
// and others may not write to, and regular files, never links.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zero/checkpoint/checkpoint_folders.h"
#include "zero/checkpoint/manifest.h"

namespace zero {

/// The run that saved a checkpoint. unknown: maybe this run, or a copy of it.
enum class Owner : std::uint8_t { this_run, another_run, unknown };
using OwnerOf = std::function<Owner(const RunDescription&)>;

/// A new folder for a spare checkpoint in `place`. None if it cannot be made or would later not count as this user's,
/// as on a file server that maps root to another user. UnreadableError if that is unknown.
std::optional<std::string> make_spare_folder(const std::string& place, FileCalls& calls);

/// Copies a run's newest spare checkpoint to `home`, verifies the copy and makes it durable, unless home has a whole
/// checkpoint as new. Then removes spares no newer than the newest whole checkpoint at home. A spare that fails
/// verification or has an unknown owner stays, with a warning, and the next older one is tried. InputError if the
/// system gives no answer or the copy finds no room; nothing is removed then. Run by one process at a time.
void bring_home(CheckpointFolders& home, const std::vector<std::string>& places, const OwnerOf& owner_of,
                FileCalls& calls);

}  // namespace zero
