#pragma once
// The stretching of rotary frequencies in a GGUF file: keys rope.scaling.*, and tensors of divisors of each frequency.
// For .cpp files only: it includes nlohmann-json. No LibTorch.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/formats/gguf/gguf_keys.h"
#include "models/formats/gguf_metadata.h"
#include "models/model_config.h"

namespace zero {

/// "rope_freqs.weight", "rope_factors_long.weight" or "rope_factors_short.weight": one value for each pair that
/// rotates.
struct RopeFactors {
  std::string name;
  std::vector<float> values;
};

/// The factors of rope_types "llama3" and "longrope". Empty for others.
std::vector<RopeFactors> rope_factors(const ModelConfig& config);
/// The names of such tensors.
const std::vector<std::string>& rope_factor_names();

/// Adds the keys of the scaling after `prefix`. None for "default" and "llama3".
void add_rope_scaling(GgufMetadata& metadata, const std::string& prefix, const ModelConfig& config);

/// The object rope_scaling of config.json for `turned` dimensions of a head, or null without scaling. `context` is
/// max_position_embeddings. Throws InputError for an unknown scaling.
nlohmann::json read_rope_scaling(GgufKeys& keys, std::int64_t turned, double theta, std::int64_t context);

}  // namespace zero
