#include "models/formats/gguf/tokenizer/gguf_tokens.h"

#include "base/error.h"
#include "base/log.h"

namespace zero {

GgufTokens gguf_tokens(const GgufFile& file) {
  const auto* texts = file.words("tokenizer.ggml.tokens");
  const auto* types = file.numbers("tokenizer.ggml.token_type");
  if (!texts || !types || types->size() != texts->size())
    throw InputError(text(file.path(), ": tokenizer.ggml.tokens and .token_type must be lists of one length"));
  for (const double type : *types)
    if (!(type >= 1 && type <= 6))
      throw InputError(text(file.path(), ": tokenizer.ggml.token_type holds ", type, "; types are 1 to 6"));
  return {*texts, *types};
}

}  // namespace zero
