#pragma once
// The tokens that a GGUF file lists, whatever the kind of its tokenizer. No LibTorch.
#include <string>
#include <vector>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Of the file's own, which outlives them. By id; types as llama_token_type: 1 normal, 2 unknown, 3 control, 4 user-defined,
/// 5 unused, 6 byte.
struct GgufTokens {
  const std::vector<std::string>& texts;
  const std::vector<double>& types;
};

/// InputError where one of the lists is missing, they are not of one length, or a type is none.
GgufTokens gguf_tokens(const GgufFile& file);

}  // namespace zero
