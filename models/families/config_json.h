#pragma once
// config.json of every family: read into a ModelConfig, and written. No LibTorch.
#include <string>

#include "models/model_config.h"

namespace zero {

/// Reads config.json text; `path` is for messages. What a file leaves open is filled in as transformers does. InputError
/// for another model_type, for what its family does not do, and for fields that change results and are not understood.
ModelConfig parse_model_config(const std::string& json, const std::string& path);

/// config.json text that the family's class of transformers opens. torch_dtype is "float32", "bfloat16" or "float16".
std::string format_model_config(const ModelConfig& config, const std::string& torch_dtype);

/// Sets one field of a preset by its config.json name from a JSON value, for [model] keys. InputError when unknown.
void set_model_field(ModelConfig& config, const std::string& name, const std::string& json_value);

}  // namespace zero
