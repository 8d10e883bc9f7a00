#pragma once
// Writes the config.json of a Llama from its numbers.
#include <nlohmann/json.hpp>

#include "models/model_config.h"

namespace zero {

/// Adds the fields from which read_decoder() reads the same numbers.
void add_llama_fields(nlohmann::ordered_json& file, const ModelConfig& config);

}  // namespace zero
