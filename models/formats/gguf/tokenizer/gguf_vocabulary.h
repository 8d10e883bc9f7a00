#pragma once
// The tokens of a tokenizer in the form of GGUF files, one for each row of a model. No LibTorch.
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

/// Reads a tokenizer.model and its folder. `path` is as in Tokenizer::load. Rows of the model without a token get
/// names. Throws InputError if the model has fewer rows than the tokenizer pieces.
GgufVocabulary gguf_vocabulary(const std::string& path, std::int64_t vocab_size);

struct PipelineForm;

/// The same for a tokenizer.json of this form.
GgufVocabulary gguf_vocabulary(const Tokenizer& tokenizer, const PipelineForm& form, std::int64_t vocab_size);

}  // namespace zero
