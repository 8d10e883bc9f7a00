#pragma once
// LocatedIds: the ids of a text, and the place of each in it. No LibTorch.
#include <cstdint>
#include <vector>

#include "models/text/text_span.h"

namespace zero {

struct LocatedIds {
  std::vector<std::int32_t> ids;
  /// Bytes of the text for each id: whole characters, so ids that share a character have the same span. An id that the
  /// tokenizer puts in front of a text has the span of its first character. An added token includes the white space
  /// that it consumes.
  std::vector<TextSpan> bytes;
  /// The same in code points, as transformers' offset_mapping. If the tokenizer's post-processor says so
  /// (trim_offsets), white space at both ends of a token is excluded.
  std::vector<TextSpan> characters;
};

}  // namespace zero
