#pragma once
// Reads and writes config.json of every family. No LibTorch.
#include <string>

#include "models/model_config.h"

namespace zero {

/// Reads config.json text. `path` is for messages. Missing fields get transformers' defaults. Throws InputError for
/// another model_type, for values that its family does not support, and for unknown fields that change results.
ModelConfig parse_model_config(const std::string& json, const std::string& path);

/// config.json text that the family's class in transformers opens. torch_dtype is "float32", "bfloat16" or "float16".
std::string format_model_config(const ModelConfig& config, const std::string& torch_dtype);

/// Sets one field of a preset by its config.json name from a JSON value, for [model] keys. Throws InputError for an
/// unknown name.
void set_model_field(ModelConfig& config, const std::string& name, const std::string& json_value);

}  // namespace zero
