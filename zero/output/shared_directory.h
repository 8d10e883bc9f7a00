#pragma once
// Whether all nodes see the same directory, which a run with checkpoints needs: each rank writes its part there.
#include <optional>
#include <string>

#include "base/files/file_calls.h"
#include "comm/communicator.h"

namespace zero {

/// Rank 0 writes a file that every rank of the group must see. Which ranks do not, as the end of a sentence that begins
/// with the directory: "is absent on ranks 2, 3 and another one on rank 1"; none where all do. Throws Error where rank 0
/// cannot write there, InputError where a rank cannot look at it. Collective; the same on all ranks.
std::optional<std::string> why_not_shared(const std::string& directory, Communicator& group, FileCalls& calls);

/// InputError, on all ranks, that says so of job.output_dir, and what to do. Collective.
void require_shared(const std::string& directory, Communicator& group, FileCalls& calls);

}  // namespace zero
