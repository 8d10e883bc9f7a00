#pragma once
#include <string>

#include <zero/safetensors.h>

#include "comm/communicator.h"

namespace zero {

/// Throws InputError on all ranks if a rank passes other names or values than rank 0. Tensors are contiguous and in
/// host memory. The message uses `call`, the call that received the tensors, and `source`, the call that returns equal
/// tensors on all ranks. Collective.
void check_same_values(const NamedTensors& values, const std::string& call, const std::string& source,
                       Communicator& ranks);

}  // namespace zero
