#pragma once
// The tokenizer that a GGUF file carries, as the files of a model directory. No LibTorch.
#include <map>
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Why the file's tokenizer cannot be had: the file has none, or one of a kind (tokenizer.ggml.model) other than
/// SentencePiece's "llama" and the merges of bytes "gpt2", or the latter with a rule for words that is not known here; empty
/// where it can.
std::string why_no_tokenizer(const GgufFile& file);

/// Of a file whose tokenizer can be had, by name: tokenizer.model of its pieces, scores and types, or tokenizer.json
/// (gguf_byte_pairs.h), and tokenizer_config.json with the named tokens and the chat template. InputError where their
/// lists do not fit together.
std::map<std::string, std::string> gguf_tokenizer_files(const GgufFile& file);

/// A folder with these files: the user's own, under the directory for temporary files, named by their content. Made
/// where it is missing; it stays. Empty where why_no_tokenizer() is not.
std::string gguf_tokenizer_folder(const GgufFile& file);

}  // namespace zero
