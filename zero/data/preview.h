#pragma once
// Preview: shows people and programs how training sees an example. No LibTorch.
#include <string>

#include "zero/data/examples/conversation_encoder.h"

namespace zero {

class Tokenizer;

/// Returns a heading with place, counts and omissions, then a line per token: "*" if it is trained, its id, its piece.
std::string preview_text(const EncodedExample& example, const Tokenizer& tokenizer);

/// One line of JSON: "text", "ids", "trained" (0 or 1 per id), and "note" if something is omitted.
std::string preview_json(const EncodedExample& example);

}  // namespace zero
