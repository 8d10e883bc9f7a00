#pragma once
// Converts the library's optimizer settings to the core's options.
#include "zero/library/include/zero/optimizers.h"
#include "zero/optim/optimizer_options.h"

namespace zero {

/// Throws InputError that names the setting if one is out of bounds.
OptimizerOptions optimizer_options_of(const OptimizerSettings& settings);

}  // namespace zero
