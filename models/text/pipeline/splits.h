#pragma once
// Splits: a text in the pipeline, in parts that the model encodes separately. Does not include LibTorch.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat_template.h"
#include "models/text/pipeline/aligned_text.h"

namespace zero {

class Pattern;

struct Split {
  std::size_t begin = 0, end = 0;  // in the text
  std::int32_t id = -1;            // of an added token; -1: text that is not yet encoded
  bool first = false;              // at the beginning of the whole text
};

struct Splits : AlignedText {
  std::vector<Split> parts;
  std::vector<TextSpan> added;  // of added tokens in the original text, with the white space that they consume

  std::string_view of(const Split& part) const {
    return std::string_view(text).substr(part.begin, part.end - part.begin);
  }
};

/// How to treat a match and the text between matches, with tokenizer.json's names.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Divides every part that is not yet an added token. Empty parts are dropped. If `invert` is set, the text between
/// matches counts as the matches.
void divide(Splits& splits, const Pattern& pattern, SplitBehavior behavior, bool invert = false);

}  // namespace zero
