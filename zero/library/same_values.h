#pragma once
#include <string>

#include <zero/safetensors.h>

#include "comm/communicator.h"

namespace zero {

/// Throws InputError on all ranks if one passes other names or values than rank 0. Tensors are contiguous and in host
/// memory. For the message: `call` is the call they were passed to, and `source` the call that gives all ranks equal
/// tensors. Collective.
void check_same_values(const NamedTensors& values, const std::string& call, const std::string& source,
                       Communicator& ranks);

}  // namespace zero
