#pragma once
// Creates folders that survive a power loss.
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// Creates a folder and its missing parents, and syncs the directory that holds each. Returns false if the folder
/// existed. Throws Error "PATH: cannot be made: REASON; REMEDY". If a sync fails, the new folder is removed first.
bool make_folder(FileCalls& calls, const std::string& folder);

}  // namespace zero
