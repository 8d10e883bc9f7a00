#pragma once
// The tokenizer of a GGUF file, as the files of a model directory. No LibTorch.
#include <map>
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Returns the reason if the file's tokenizer is not available; empty if it is. There may be no tokenizer, or one whose
/// kind (tokenizer.ggml.model) is neither SentencePiece's "llama" nor the byte merges "gpt2". Or "gpt2" may have an
/// unknown rule for words.
std::string why_no_tokenizer(const GgufFile& file);

/// The tokenizer files by name. They are tokenizer.model with its pieces, scores and types, or tokenizer.json
/// (gguf_byte_pairs.h), and tokenizer_config.json with the named tokens and the chat template. Throws InputError if the
/// file's lists do not match.
std::map<std::string, std::string> gguf_tokenizer_files(const GgufFile& file);

/// A folder with these files: the user's own, under the directory for temporary files, named by their content. It is
/// created if missing, and stays. Empty if why_no_tokenizer() is not.
std::string gguf_tokenizer_folder(const GgufFile& file);

}  // namespace zero
