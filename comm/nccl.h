#pragma once
// The NCCL backend: collectives of CUDA tensors. A build without CUDA has nccl_absent.cpp instead, whose function throws.
#include <memory>

#include "comm/communicator.h"

namespace zero {

/// The same ranks as `host`, on this rank's CUDA device. `host` carries the set-up and must outlive the result. Collective.
/// Throws InputError in a build without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, int device);

}  // namespace zero
