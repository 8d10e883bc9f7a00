#pragma once
// NearestFit: the mildest change of a configuration with which it fits.
#include <functional>
#include <string>

#include "zero/train/batch_arithmetic.h"
#include "zero/train/config.h"

namespace zero {

using FitTest = std::function<bool(const Config& config, const BatchArithmetic& batch)>;

/// Tries a higher stage, then recomputing all activations, gradients in bf16, the optimizer's states on disk (`on_device`, of
/// a GPU run: on the host first), the parameters likewise, a smaller local batch; every combination of milder changes before a harsher one. The first that fits, as keys
/// to set ("zero.stage = 3, activation_checkpoint.mode = "full""); empty when none does.
std::string nearest_fit(const Config& config, const BatchArithmetic& batch, bool on_device, const FitTest& fits);

}  // namespace zero
