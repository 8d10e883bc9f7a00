#pragma once
// Writes a Llama's config.json fields from its ModelConfig.
#include <nlohmann/json.hpp>

#include "models/model_config.h"

namespace zero {

/// Adds the fields from which read_decoder() restores the same configuration.
void add_llama_fields(nlohmann::ordered_json& file, const ModelConfig& config);

}  // namespace zero
