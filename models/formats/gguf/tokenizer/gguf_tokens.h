#pragma once
// The tokens of a GGUF file, for any kind of tokenizer. No LibTorch.
#include <string>
#include <vector>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// The lists are views into the file, which outlives them, and are indexed by id. Types are those of llama_token_type:
/// 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
struct GgufTokens {
  const std::vector<std::string>& texts;
  const std::vector<double>& types;
};

/// Throws InputError if a list is missing, lengths differ, or a type is unknown.
GgufTokens gguf_tokens(const GgufFile& file);

}  // namespace zero
