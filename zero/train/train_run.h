#pragma once
// One run of zero_train, from a configuration to the trained model: the order in which the rooms are entered.
#include "comm/world/job.h"
#include "zero/train/train_arguments.h"

namespace zero {

/// Finds every mistake of the user before it writes or allocates anything. Returns the exit code.
int train_run(Job& job, const TrainArguments& arguments);

}  // namespace zero
