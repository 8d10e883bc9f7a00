#pragma once
// How rotary frequencies are stretched, as a GGUF file tells it: keys rope.scaling.*, and tensors of what each frequency is
// divided by. For .cpp files only: it brings nlohmann-json with it. No LibTorch.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/formats/gguf/gguf_keys.h"
#include "models/formats/gguf_metadata.h"
#include "models/model_config.h"

namespace zero {

/// "rope_freqs.weight", "rope_factors_long.weight" or "rope_factors_short.weight": one value for each pair that turns.
struct RopeFactors {
  std::string name;
  std::vector<float> values;
};

/// Those of rope_types "llama3" and "longrope"; none else.
std::vector<RopeFactors> rope_factors(const ModelConfig& config);
/// The names that such tensors have.
const std::vector<std::string>& rope_factor_names();

/// Adds the keys of the scaling behind `prefix`; none for "default" and "llama3".
void add_rope_scaling(GgufMetadata& metadata, const std::string& prefix, const ModelConfig& config);

/// The object rope_scaling of config.json for `turned` dimensions of a head; null without scaling. `context` is
/// max_position_embeddings. InputError for a scaling that is not known.
nlohmann::json read_rope_scaling(GgufKeys& keys, std::int64_t turned, double theta, std::int64_t context);

}  // namespace zero
