#pragma once
// The tokens of a GGUF file, for any kind of tokenizer. Does not include LibTorch.
#include <string>
#include <vector>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// The lists are indexed by id. They refer to the file, which must outlive them. Types are llama_token_type's: 1
/// normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
struct GgufTokens {
  const std::vector<std::string>& texts;
  const std::vector<double>& types;
};

/// Throws InputError if a list is missing, if lengths differ, or if a type is unknown.
GgufTokens gguf_tokens(const GgufFile& file);

}  // namespace zero
