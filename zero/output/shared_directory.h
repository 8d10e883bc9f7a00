#pragma once
// Checks that all nodes see the same directory. Checkpoints need this: each rank writes its part there.
#include <optional>
#include <string>

#include "base/files/file_calls.h"
#include "comm/communicator.h"

namespace zero {

/// Rank 0 writes a file that every rank must see. Returns none if all do. Otherwise returns the end of a sentence about
/// the directory: "is absent on ranks 2, 3 and another one on rank 1". Error if rank 0 cannot write there, InputError
/// if a rank cannot inspect it. Collective; equal on all ranks.
std::optional<std::string> why_not_shared(const std::string& directory, Communicator& group, FileCalls& calls);

/// If nodes do not share job.output_dir, throws InputError with the remedy on all ranks. Collective.
void require_shared(const std::string& directory, Communicator& group, FileCalls& calls);

}  // namespace zero
