#pragma once
// Reads and writes the config.json of every family. Does not include LibTorch.
#include <string>

#include "models/model_config.h"

namespace zero {

/// Reads config.json text. Messages name `path`. Missing fields get transformers' defaults. Throws InputError for an
/// unknown model_type, for values that the family does not support, and for unknown fields that change results.
ModelConfig parse_model_config(const std::string& json, const std::string& path);

/// Returns config.json text that the family's class in transformers can open. torch_dtype is "float32", "bfloat16" or
/// "float16".
std::string format_model_config(const ModelConfig& config, const std::string& torch_dtype);

/// Sets one field of a preset, named as in config.json, to a JSON value. It serves the keys of [model]. Throws
/// InputError for an unknown name.
void set_model_field(ModelConfig& config, const std::string& name, const std::string& json_value);

}  // namespace zero
