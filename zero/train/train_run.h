#pragma once
// One run of zero_train, from a configuration to the trained model. It shows the order in which the other rooms (source
// folders) are used.
#include "comm/world/job.h"
#include "zero/train/train_arguments.h"

namespace zero {

/// Finds all user errors before it writes or allocates anything. Returns the exit code.
int train_run(Job& job, const TrainArguments& arguments);

}  // namespace zero
