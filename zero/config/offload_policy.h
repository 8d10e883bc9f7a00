#pragma once
// [offload] as the policy of an engine: memory, or a disk tier that the stores of a rank share.
#include "zero/config/config.h"
#include "zero/core/engine.h"

namespace zero {

/// `rank` names the rank's own folder inside offload.nvme_dir. "cpu" is the host's memory: on a CPU run the same as
/// "none" for the optimizer. `device`: of the run. Error where the folder cannot be used: another run holds it, the
/// disk is full, io is refused.
OffloadPolicy offload_policy_of(const Config& config, int rank, at::Device device);

}  // namespace zero
