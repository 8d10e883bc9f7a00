#include "zero/data/text_encoder.h"

#include <string>

#include "models/tokenizer.h"

namespace zero {

TextEncoder text_encoder_of(const Tokenizer& tokenizer) {
  TextEncoder encoder;
  encoder.fingerprint = fingerprint_of("tokenizer " + std::to_string(tokenizer.hash()));
  encoder.vocab_size = tokenizer.vocab_size();
  encoder.bos = tokenizer.bos().value_or(-1);
  encoder.eos = tokenizer.eos().value_or(-1);
  encoder.newline_stands_alone = tokenizer.newline_stands_alone();
  encoder.encode = [&tokenizer](std::string_view text) { return tokenizer.encode(text); };
  return encoder;
}

}  // namespace zero
