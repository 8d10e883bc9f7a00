#pragma once
// The settings of the library's users as the core has them.
#include "zero/library/include/zero/optimizers.h"
#include "zero/optim/optimizer_options.h"

namespace zero {

/// Throws InputError that names what is out of its bounds.
OptimizerOptions optimizer_options_of(const OptimizerSettings& settings);

}  // namespace zero
