#pragma once
// NearestFit: the mildest change of a configuration with which it fits.
#include <functional>
#include <string>

#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"

namespace zero {

using FitTest = std::function<bool(const Config& config, const BatchArithmetic& batch)>;

/// Tries keeping less for backward, a higher stage, then recomputing all activations, gradients in bf16, the optimizer's states on disk
/// (`on_device`, of a GPU run: on the host first), the parameters likewise, a smaller local batch; every combination of
/// milder changes before a harsher one. Where none fits and a trained model is the start, LoRA in their place, then
/// with the base in 8 bits or NF4. The first that fits, as it is given to zero_train ("--set zero.stage=3 --set
/// activation_checkpoint.mode=full"); empty when none does.
std::string nearest_fit(const Config& config, const BatchArithmetic& batch, bool on_device, const FitTest& fits);

/// offload.nvme_dir, or the folder that a proposal names where it is not given.
std::string offload_directory(const Config& config);

}  // namespace zero
