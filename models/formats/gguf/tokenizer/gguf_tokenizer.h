#pragma once
// The tokenizer of a GGUF file, as the files of a model directory. Does not include LibTorch.
#include <map>
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

/// Returns an empty text if the file's tokenizer is supported, and otherwise the reason. One reason is that the file
/// has no tokenizer, or a kind (tokenizer.ggml.model) other than SentencePiece's "llama" and byte-level "gpt2". Another
/// is that a "gpt2" tokenizer splits words by an unknown rule.
std::string why_no_tokenizer(const GgufFile& file);

/// Returns the contents of the tokenizer files by name: tokenizer.model or tokenizer.json (gguf_byte_pairs.h), and
/// tokenizer_config.json with the named tokens and the chat template. Throws InputError if the file's lists do not
/// match.
std::map<std::string, std::string> gguf_tokenizer_files(const GgufFile& file);

/// Returns a folder with these files. Only this user can write to the folder. The folder is in the directory for
/// temporary files, and its name depends on the files' contents. It is created if it is missing, and is not removed.
/// Returns an empty path if why_no_tokenizer() gives a reason.
std::string gguf_tokenizer_folder(const GgufFile& file);

}  // namespace zero
