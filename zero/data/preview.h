#pragma once
// Preview: what training will see of an example, for people and for programs. No LibTorch.
#include <string>

#include "zero/data/examples/conversation_encoder.h"

namespace zero {

class Tokenizer;

/// A heading with place, counts and what is left out, then a line per token: "*" where it is trained, its id, its piece.
std::string preview_text(const EncodedExample& example, const Tokenizer& tokenizer);

/// One line of JSON: "text", "ids", "trained" (0 or 1 per id), "note" where something is left out.
std::string preview_json(const EncodedExample& example);

}  // namespace zero
