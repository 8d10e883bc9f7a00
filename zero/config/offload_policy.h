#pragma once
// Converts [offload] to an engine's policy: memory, or a disk tier that the rank's stores share.
#include "zero/config/config.h"
#include "zero/core/engine.h"

namespace zero {

/// `rank` names the rank's folder inside offload.nvme_dir. "cpu" means host memory, which in a CPU run is the same as
/// "none" for the optimizer. `device`: the run's device. Throws Error if the folder cannot be used, because another run
/// uses it, the disk is full, or I/O fails.
OffloadPolicy offload_policy_of(const Config& config, int rank, at::Device device);

}  // namespace zero
