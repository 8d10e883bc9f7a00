#pragma once
// NearestFit: finds the mildest change that makes a configuration fit into memory.
#include <functional>
#include <string>

#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"

namespace zero {

using FitTest = std::function<bool(const Config& config, const BatchArithmetic& batch)>;

/// Returns arguments for zero_train ("--set zero.stage=3 --set activation_checkpoint.mode=full"); empty if nothing
/// fits. Tries in this order:
/// - keeping less for backward, a higher stage, full recomputation, bf16 gradients;
/// - optimizer states on disk (on a GPU, on the host first), parameters likewise, a smaller local batch.
///
/// All combinations of milder changes are tried before a harsher change. If none fits and the run starts from a trained
/// model, tries LoRA instead, then LoRA with the base model in 8 bits or NF4.
std::string nearest_fit(const Config& config, const BatchArithmetic& batch, bool on_device, const FitTest& fits);

/// Returns offload.nvme_dir, or the folder that proposals name if the key is not set.
std::string offload_directory(const Config& config);

}  // namespace zero
