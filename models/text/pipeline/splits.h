#pragma once
// Splits: a text on its way through the pipeline, in parts that go to the model one by one. No LibTorch.
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
  std::int32_t id = -1;            // of an added token; -1: still a text
  bool first = false;              // nothing of the whole text stands before it
};

struct Splits : AlignedText {
  std::vector<Split> parts;
  std::vector<TextSpan> added;  // where each added token stands in the original, with the white space that it takes

  std::string_view of(const Split& part) const {
    return std::string_view(text).substr(part.begin, part.end - part.begin);
  }
};

/// What becomes of a match and of what lies between matches, by the names that tokenizer.json gives them.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Divides every part that is still a text; empty parts vanish. With `invert` the matches are what lies between.
void divide(Splits& splits, const Pattern& pattern, SplitBehavior behavior, bool invert = false);

}  // namespace zero
