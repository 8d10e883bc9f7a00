#pragma once
// What a World is made of.
#include <memory>

#include "comm/mesh/mesh.h"
#include "comm/world/job.h"
#include "zero/library/include/zero/world.h"

namespace zero {

struct World::Impl {
  std::unique_ptr<Job> job;                 // null: it is somebody else's
  std::unique_ptr<Communicator> on_device;  // null: the host's ranks take the device's tensors
  Communicator* ranks = nullptr;            // for tensors of the device
  Communicator* host = nullptr;
  Communicator* control = nullptr;  // of long patience
  at::Device device = at::kCPU;
  int local_rank = 0;
};

/// A world of these ranks, which outlive it: for tests.
World world_of(Communicator& ranks);

}  // namespace zero
