#pragma once
// The ids that SentencePiece gives a text, and the bytes behind each: for models that do more than merge. No LibTorch.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/text_span.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace zero {

/// Appends the ids of the part of a text, encoded as a text of its own, and their spans in the whole: whole characters,
/// so that ids which share one (bytes of it, or what a normaliser makes of it) have the same span, as has what the model
/// puts in front of a text with the first character. White space that the model takes away is in no span. The rule is
/// SentencePiece's alignment. InputError, with `path`, when it cannot encode.
void add_located(const sentencepiece::SentencePieceProcessor& processor, const std::string& path,
                 std::string_view whole, TextSpan part, std::vector<std::int32_t>& ids, std::vector<TextSpan>& spans);

}  // namespace zero
