#pragma once
// A tokenizer's tokens as GGUF files store them, one per row of the model's embedding. Does not include LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "models/text/tokenizer.h"

namespace zero {

struct GgufVocabulary {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  // llama_token_type: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::int32_t> types;
};

/// Reads a tokenizer.model and its folder. `path` is as in Tokenizer::load. Rows without a token get made-up names.
/// Throws InputError if the model has fewer rows than the tokenizer has pieces.
GgufVocabulary gguf_vocabulary(const std::string& path, std::int64_t vocab_size);

struct PipelineForm;

/// Does the same for a tokenizer.json that has this form.
GgufVocabulary gguf_vocabulary(const Tokenizer& tokenizer, const PipelineForm& form, std::int64_t vocab_size);

}  // namespace zero
