#pragma once
// A tokenizer as GGUF files carry it, in the keys tokenizer.ggml.* and tokenizer.chat_template. No LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "models/formats/gguf_metadata.h"
#include "models/formats/tokenizer_files.h"
#include "models/model_config.h"

namespace zero {

struct GgufVocabulary {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  // llama_token_type: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::int32_t> types;
};

/// The tokens of a tokenizer.model and its folder, with names for the rows of the model that have no token. `path` as
/// in Tokenizer::load. InputError when the model has fewer rows than the tokenizer pieces.
GgufVocabulary gguf_vocabulary(const std::string& path, std::int64_t vocab_size);

/// Adds what llama.cpp needs to encode and decode text, and to chat. Without a tokenizer it says that the file has
/// none.
void add_tokenizer(GgufMetadata& metadata, const TokenizerSource& source, const ModelConfig& config);

}  // namespace zero
