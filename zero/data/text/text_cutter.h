#pragma once
// Token ids of a long text, chunk by chunk, equal to those of the text encoded as one string: BOS, the text with its
// newlines, EOS, or what else the tokenizer puts around a document. A byte order mark at the start is passed over. The text is cut where the tokenizer allows it, so that
// memory does not grow with it.
#include <string>

#include "zero/data/text/text_encoder.h"
#include "zero/data/text/token_cache.h"

namespace zero {

/// The name of this rule. Changes whenever ids of the same text and tokenizer would.
inline constexpr const char* text_rule = "one document per file: BOS + whole text + EOS, version 3";

/// How the ids of the text file at `path` are made. InputError from its encode for what is no UTF-8 (base/utf8.h).
CacheRecipe text_recipe(const std::string& path, const TextEncoder& encoder);

}  // namespace zero
