#pragma once
// Checks that all nodes see the same directory. Checkpoints need this, since each rank writes its part into the
// directory.
#include <optional>
#include <string>

#include "base/files/file_calls.h"
#include "comm/communicator.h"

namespace zero {

/// Rank 0 writes a file that every rank must see. Returns none if all ranks see it. Otherwise returns the end of a
/// sentence about the directory: "is absent on ranks 2, 3 and another one on rank 1". Throws Error if rank 0 cannot
/// write to the directory, and InputError if a rank cannot inspect it. The result is the same on all ranks. Collective.
std::optional<std::string> why_not_shared(const std::string& directory, Communicator& group, FileCalls& calls);

/// If nodes do not share job.output_dir, throws InputError with the remedy on all ranks. Collective.
void require_shared(const std::string& directory, Communicator& group, FileCalls& calls);

}  // namespace zero
