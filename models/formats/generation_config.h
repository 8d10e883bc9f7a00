#pragma once
// generation_config.json: where generated text ends, and how it is drawn. No LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "models/formats/tokenizer_files.h"
#include "models/model_config.h"

namespace zero {

/// The tokens that end a text of a model: of BASE/generation_config.json, which has the last word in transformers, else
/// of the model's configuration; and the one that ends an answer of its chats. `base` may be empty. InputError for a
/// broken file.
std::vector<std::int64_t> stop_ids_of(const ModelConfig& config, const std::string& base,
                                      const TokenizerSource& tokenizer);

/// Writes FOLDER/generation_config.json: the base's own where it has one, with these stop ids.
void write_generation_config(const std::string& folder, const ModelConfig& config, const std::string& base,
                             const std::vector<std::int64_t>& stop_ids);

}  // namespace zero
