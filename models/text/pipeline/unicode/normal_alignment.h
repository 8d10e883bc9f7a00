#pragma once
// Maps the characters of a text's normal form to their origins, with the counts of Hugging Face's library (the crate
// unicode-normalization-alignments). No LibTorch.
#include <string>
#include <string_view>
#include <vector>

#include "models/text/pipeline/unicode/unicode_text.h"

namespace zero {

/// A character of the normal form. A `change` of 1 means that it was inserted after the previous one, 0 that it
/// replaces one character. -n means that it replaces one character and the next n.
struct NormalCharacter {
  char32_t code = 0;
  int change = 0;
  int combining_class = 0;
};

std::vector<NormalCharacter> normal_characters(NormalForm form, std::string_view text);

}  // namespace zero
