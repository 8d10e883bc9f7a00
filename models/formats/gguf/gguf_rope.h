#pragma once
// The scaling of rotary frequencies in a GGUF file: the keys rope.scaling.*, and tensors with a divisor for each
// frequency. Include this in .cpp files only, since it includes nlohmann-json. Does not include LibTorch.
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

/// The factors of rope_types "llama3" and "longrope". Empty for any other type.
std::vector<RopeFactors> rope_factors(const ModelConfig& config);
/// The names of such tensors.
const std::vector<std::string>& rope_factor_names();

/// Adds the scaling's keys, which begin with `prefix`. "default" and "llama3" have none.
void add_rope_scaling(GgufMetadata& metadata, const std::string& prefix, const ModelConfig& config);

/// Returns config.json's rope_scaling object for `turned` dimensions of a head, or null if there is no scaling.
/// `context` is max_position_embeddings. Throws InputError for an unknown scaling.
nlohmann::json read_rope_scaling(GgufKeys& keys, std::int64_t turned, double theta, std::int64_t context);

}  // namespace zero
