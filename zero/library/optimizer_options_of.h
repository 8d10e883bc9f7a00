#pragma once
// The settings of the library's users as the core has them.
#include "zero/library/include/zero/optimizers.h"
#include "zero/optim/optimizer_options.h"

namespace zero {

/// Throws InputError that names what is out of its bounds.
OptimizerOptions optimizer_options_of(const OptimizerSettings& settings);

/// All that decides what a step does, for people: equal where two processes would step alike.
std::string description_of(const OptimizerOptions& options);

}  // namespace zero
