#pragma once
// generation_config.json: the end of generated text, and the sampling settings. No LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "models/formats/tokenizer_files.h"
#include "models/model_config.h"

namespace zero {

/// The tokens that end a text of a model, and the one that ends an answer of its chats. The former come from
/// BASE/generation_config.json, which has precedence in transformers, else from the model's configuration. `base` may
/// be empty. Throws InputError for a broken file.
std::vector<std::int64_t> stop_ids_of(const ModelConfig& config, const std::string& base,
                                      const TokenizerSource& tokenizer);

/// Writes FOLDER/generation_config.json: the base's own if there is one, with these stop ids.
void write_generation_config(const std::string& folder, const ModelConfig& config, const std::string& base,
                             const std::vector<std::int64_t>& stop_ids);

}  // namespace zero
