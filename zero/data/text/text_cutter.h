#pragma once
// Encodes a long text chunk by chunk. The ids equal those of the whole text: BOS, the text with its newlines, EOS, or
// the tokenizer's own marks around a document. Skips a byte order mark at the start. Memory stays bounded. The text is
// cut only where the tokenizer allows it.
#include <string>

#include "zero/data/text/text_encoder.h"
#include "zero/data/text/token_cache.h"

namespace zero {

/// The version of this encoding. Change it whenever the ids for the same text and tokenizer change.
inline constexpr const char* text_rule = "one document per file: BOS + whole text + EOS, version 3";

/// Returns the recipe for the ids of the text file at `path`. The recipe's encode throws InputError for invalid UTF-8
/// (base/utf8.h).
CacheRecipe text_recipe(const std::string& path, const TextEncoder& encoder);

}  // namespace zero
