#pragma once
// Converts [offload] to an engine's policy: memory, or a disk tier that the rank's stores share.
#include "zero/config/config.h"
#include "zero/core/engine.h"

namespace zero {

/// `rank` names the rank's folder inside offload.nvme_dir. "cpu" means host memory, which on a CPU run equals "none"
/// for the optimizer. `device`: the run's. Error if the folder cannot be used: another run holds it, the disk is full,
/// or I/O is refused.
OffloadPolicy offload_policy_of(const Config& config, int rank, at::Device device);

}  // namespace zero
