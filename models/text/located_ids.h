#pragma once
// LocatedIds: the ids of a text, and the position of each id in the text. Does not include LibTorch.
#include <cstdint>
#include <vector>

#include "models/text/text_span.h"

namespace zero {

struct LocatedIds {
  std::vector<std::int32_t> ids;
  /// Each id's bytes in the text. Spans are whole characters, so ids that share a character have the same span. An id
  /// that the tokenizer prepends to a text has the span of the first character. An added token's span includes the
  /// white space that the token consumes.
  std::vector<TextSpan> bytes;
  /// The same in code points, like transformers' offset_mapping. If the tokenizer's post-processor sets trim_offsets,
  /// white space at both ends of a token is excluded.
  std::vector<TextSpan> characters;
};

}  // namespace zero
