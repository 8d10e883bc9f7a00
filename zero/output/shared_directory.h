#pragma once
// Whether all nodes see the same directory, which a run with checkpoints needs.
#include <string>

#include "comm/communicator.h"

namespace zero {

/// Rank 0 writes a file that every rank of the group must see. InputError, on all ranks, that names the directory.
/// Collective.
void require_shared(const std::string& directory, Communicator& group);

}  // namespace zero
