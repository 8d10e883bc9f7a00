#pragma once
// Folders that are there after a loss of power too.
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// Makes a folder and those above it, each under a durable name. False when it was there. Error "PATH: cannot be made:
/// REASON; REMEDY"; a folder whose name cannot be made durable is removed again.
bool make_folder(FileCalls& calls, const std::string& folder);

}  // namespace zero
