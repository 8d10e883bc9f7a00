#pragma once
// The tokenizer of a GGUF file, as the files of a model directory. No LibTorch.
#include <map>
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// The reason why the file's tokenizer is not available. The file has none, or one of a kind (tokenizer.ggml.model)
/// other than SentencePiece's "llama" and the byte merges "gpt2", or the latter with an unknown rule for words. Empty
/// if it is available.
std::string why_no_tokenizer(const GgufFile& file);

/// The tokenizer files by name. They are tokenizer.model with its pieces, scores and types, or tokenizer.json
/// (gguf_byte_pairs.h), and tokenizer_config.json with the named tokens and the chat template. Throws InputError if the
/// file's lists do not match.
std::map<std::string, std::string> gguf_tokenizer_files(const GgufFile& file);

/// A folder with these files: the user's own, under the directory for temporary files, named by their content. It is
/// created if missing, and stays. Empty if why_no_tokenizer() is not.
std::string gguf_tokenizer_folder(const GgufFile& file);

}  // namespace zero
