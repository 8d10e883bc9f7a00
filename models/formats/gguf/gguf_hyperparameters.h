#pragma once
// The numbers of a model under the keys of its architecture. No LibTorch.
#include "models/formats/gguf_metadata.h"
#include "models/model_config.h"

namespace zero {

/// Adds what llama.cpp makes the model of: sizes, norms, ropes and windows. The model was looked at by check_gguf().
void add_hyperparameters(GgufMetadata& metadata, const ModelConfig& config);

}  // namespace zero
