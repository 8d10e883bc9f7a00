#pragma once
// The tokenizer.json of a GGUF file whose tokenizer merges bytes (tokenizer.ggml.model "gpt2"): what llama.cpp does with
// the file, which brings no text into a normal form. No LibTorch.
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Why there is none: the file cuts words by a rule that is not known here (pre_tokenizer_rules.h); empty where there is one.
std::string why_no_byte_pairs(const GgufFile& file);

/// Its JSON. InputError where the lists of tokens, types and merges do not fit together.
std::string byte_pairs_json(const GgufFile& file);

}  // namespace zero
