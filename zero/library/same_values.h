#pragma once
#include <string>

#include <zero/safetensors.h>

#include "comm/communicator.h"

namespace zero {

/// Throws InputError on all ranks where one passes other names or values than rank 0. The tensors are contiguous and in
/// host memory. `call`: whose arguments they are; `source`: the call that leaves the same tensors on each rank; both for
/// the message. Collective.
void check_same_values(const NamedTensors& values, const std::string& call, const std::string& source,
                       Communicator& ranks);

}  // namespace zero
