#pragma once
// The tokenizer.json of a GGUF file whose tokenizer merges bytes (tokenizer.ggml.model "gpt2"). It encodes as llama.cpp
// does, which brings no text into a normal form. No LibTorch.
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Returns the reason if there is none: the file cuts words by an unknown rule (pre_tokenizer_rules.h). Empty if there
/// is one.
std::string why_no_byte_pairs(const GgufFile& file);

/// Its JSON. Throws InputError if the lists of tokens, types and merges do not match.
std::string byte_pairs_json(const GgufFile& file);

}  // namespace zero
