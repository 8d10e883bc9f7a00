#pragma once
// The tokenizer.json of a GGUF file whose tokenizer merges bytes (tokenizer.ggml.model "gpt2"). It encodes as llama.cpp
// does, without Unicode normalisation. Does not include LibTorch.
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Returns an empty text if the tokenizer is supported. Otherwise returns the reason: the file splits words by an
/// unknown rule (pre_tokenizer_rules.h).
std::string why_no_byte_pairs(const GgufFile& file);

/// Returns the tokenizer.json. Throws InputError if the lists of tokens, types and merges do not match.
std::string byte_pairs_json(const GgufFile& file);

}  // namespace zero
