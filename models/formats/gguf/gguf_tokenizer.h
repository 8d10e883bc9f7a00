#pragma once
// The tokenizer that a GGUF file carries, as the files of a model directory. No LibTorch.
#include <map>
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Why the file's tokenizer cannot be had: the file has none, or it is none of SentencePiece's (tokenizer.ggml.model
/// must be "llama"); empty where it can. Names the kind.
std::string why_no_tokenizer(const GgufFile& file);

/// tokenizer.model and tokenizer_config.json by name, of a file that has a tokenizer of SentencePiece: its pieces,
/// scores and types, the named tokens, the chat template. InputError where their lists do not fit together.
std::map<std::string, std::string> gguf_tokenizer_files(const GgufFile& file);

/// A folder with these files: the user's own, under the directory for temporary files, named by their content. Made
/// where it is missing; it stays. Empty where why_no_tokenizer() is not.
std::string gguf_tokenizer_folder(const GgufFile& file);

}  // namespace zero
