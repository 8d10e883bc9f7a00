#pragma once
// The config.json of a Llama, written from its numbers.
#include <nlohmann/json.hpp>

#include "models/model_config.h"

namespace zero {

/// Adds the fields by which read_decoder() finds the same numbers again.
void add_llama_fields(nlohmann::ordered_json& file, const ModelConfig& config);

}  // namespace zero
