#include "zero/data/text/text_encoder.h"

#include <string>

#include "models/text/tokenizer.h"

namespace zero {

TextEncoder text_encoder_of(const Tokenizer& tokenizer) {
  TextEncoder encoder;
  encoder.fingerprint = fingerprint_of("tokenizer " + std::to_string(tokenizer.hash()));
  encoder.vocab_size = tokenizer.vocab_size();
  encoder.opening = tokenizer.opening();
  encoder.closing = tokenizer.closing();
  encoder.encode = [&tokenizer](std::string_view text, bool inside) {
    return tokenizer.encode(text, {.inside = inside});
  };
  encoder.next_cut = [&tokenizer](std::string_view text, std::size_t from) { return tokenizer.next_cut(text, from); };
  return encoder;
}

}  // namespace zero
