#pragma once
// Which characters of a text those of its normal form come from, as Hugging Face's library counts it (the crate
// unicode-normalization-alignments). No LibTorch.
#include <string>
#include <string_view>
#include <vector>

#include "models/text/pipeline/unicode/unicode_text.h"

namespace zero {

/// A character of the normal form. `change` 1: it is there beside the one before it; 0: it stands for one character;
/// -n: for that and the n behind it.
struct NormalCharacter {
  char32_t code = 0;
  int change = 0;
  int combining_class = 0;
};

std::vector<NormalCharacter> normal_characters(NormalForm form, std::string_view text);

}  // namespace zero
