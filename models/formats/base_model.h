#pragma once
// BaseModel: what a run or a program begins with: a Hugging Face directory, or a GGUF file.
#include <memory>
#include <string>

#include "models/formats/unused_tensors.h"
#include "models/model_config.h"
#include "models/weight_source.h"

namespace zero {

/// Whether the path is read as a GGUF file: by its ending, or by its first bytes.
bool is_gguf_model(const std::string& path);

/// Of the model at the path; reads no weights. InputError where it is missing, broken or of an unknown kind.
ModelConfig config_of_model(const std::string& path);
/// Whether the path holds weights beside a configuration.
bool holds_weights(const std::string& path);
std::shared_ptr<WeightSource> weights_of_model(const std::string& path, UnusedTensors unused = UnusedTensors::refuse);

}  // namespace zero
