#pragma once
// Maps the characters of a text's normal form to their origins, as Hugging Face's library does (the crate
// unicode-normalization-alignments). Does not include LibTorch.
#include <string>
#include <string_view>
#include <vector>

#include "models/text/pipeline/unicode/unicode_text.h"

namespace zero {

/// A character of the normal form. A `change` of 1 means that it was inserted after the previous character. 0 means
/// that it replaces one character, and -n that it replaces one character and the next n.
struct NormalCharacter {
  char32_t code = 0;
  int change = 0;
  int combining_class = 0;
};

std::vector<NormalCharacter> normal_characters(NormalForm form, std::string_view text);

}  // namespace zero
