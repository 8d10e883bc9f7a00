#pragma once
// Examines GPUs, their driver, and NCCL.
#include "zero/doctor/finding.h"

namespace zero {

/// The GPUs that nvidia-smi lists, and those that this build can use.
Finding examine_gpus();

/// The NCCL library that this process has loaded, or the fact that the build has none.
Finding examine_nccl();

}  // namespace zero
