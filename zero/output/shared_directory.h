#pragma once
// Whether all nodes see the same directory, which a run with checkpoints needs.
#include <functional>
#include <string>

#include "comm/communicator.h"

namespace zero {

/// Rank 0 writes a file that every rank must see. InputError, on all ranks, that names the directory. Collective.
void require_shared(const std::string& directory, Communicator& communicator,
                    const std::function<void(const std::function<void()>&)>& agree);

}  // namespace zero
