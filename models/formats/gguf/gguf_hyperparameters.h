#pragma once
// A model's hyperparameters under its architecture's keys. Does not include LibTorch.
#include "models/formats/gguf_metadata.h"
#include "models/model_config.h"

namespace zero {

/// Adds the keys from which llama.cpp builds the model: sizes, norms, ropes and windows. check_gguf() must have
/// accepted the model.
void add_hyperparameters(GgufMetadata& metadata, const ModelConfig& config);

}  // namespace zero
