#pragma once
// generation_config.json: the tokens that end generated text, and the sampling settings. Does not include LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "models/formats/tokenizer_files.h"
#include "models/model_config.h"

namespace zero {

/// The tokens that end a model's text, and the token that ends an answer in a chat. The former come from
/// BASE/generation_config.json, as in transformers, or otherwise from the model's configuration. `base` may be empty.
/// Throws InputError for a broken file.
std::vector<std::int64_t> stop_ids_of(const ModelConfig& config, const std::string& base,
                                      const TokenizerSource& tokenizer);

/// Writes FOLDER/generation_config.json with these stop ids. The other fields come from the base's file if there is
/// one.
void write_generation_config(const std::string& folder, const ModelConfig& config, const std::string& base,
                             const std::vector<std::int64_t>& stop_ids);

}  // namespace zero
