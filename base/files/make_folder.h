#pragma once
// Folders that survive a loss of power.
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// Creates a folder and its parents, each under a durable name. Returns false if it existed. Throws Error "PATH: cannot
/// be made: REASON; REMEDY"; it first removes a folder whose name cannot be made durable.
bool make_folder(FileCalls& calls, const std::string& folder);

}  // namespace zero
