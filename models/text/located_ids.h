#pragma once
// LocatedIds: the ids of a text, and where each of them stands in it. No LibTorch.
#include <cstdint>
#include <vector>

#include "models/text/text_span.h"

namespace zero {

struct LocatedIds {
  std::vector<std::int32_t> ids;
  /// Bytes of the text that each id came from: whole characters, so that ids which share one have the same span. What
  /// the tokenizer puts in front of a text has the span of its first character, an added token the white space that it
  /// takes from beside it.
  std::vector<TextSpan> bytes;
  /// The same in code points, as transformers' offset_mapping has it: where the tokenizer's post-processor says so
  /// (trim_offsets) without the white space at both ends of a token.
  std::vector<TextSpan> characters;
};

}  // namespace zero
