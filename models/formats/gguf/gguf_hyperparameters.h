#pragma once
// The numbers of a model under its architecture's keys. No LibTorch.
#include "models/formats/gguf_metadata.h"
#include "models/model_config.h"

namespace zero {

/// Adds the keys from which llama.cpp builds the model: sizes, norms, ropes and windows. check_gguf() must have
/// accepted it.
void add_hyperparameters(GgufMetadata& metadata, const ModelConfig& config);

}  // namespace zero
