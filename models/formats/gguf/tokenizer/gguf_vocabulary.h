#pragma once
// The tokens of a tokenizer, one for each row of a model, as GGUF files carry them. No LibTorch.
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

/// Of a tokenizer.model and its folder. `path` as in Tokenizer::load. Rows of the model without a token get names.
/// InputError when the model has fewer rows than the tokenizer pieces.
GgufVocabulary gguf_vocabulary(const std::string& path, std::int64_t vocab_size);

struct PipelineForm;

/// The same of a tokenizer.json that has the form.
GgufVocabulary gguf_vocabulary(const Tokenizer& tokenizer, const PipelineForm& form, std::int64_t vocab_size);

}  // namespace zero
