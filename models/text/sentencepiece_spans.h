#pragma once
// The ids that SentencePiece gives a text, and the bytes behind each, for models that do more than merge. No LibTorch.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/text_span.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace zero {

/// Encodes the part of a text as a text of its own. Appends its ids and their spans in the whole. Spans are whole
/// characters: ids that share a character (its bytes, or its normalised form) have the same span. A prefix that the
/// model adds shares the span of the first character. White space that the model removes is in no span. The rule is
/// SentencePiece's alignment. Throws InputError, with `path`, if it cannot encode.
void add_located(const sentencepiece::SentencePieceProcessor& processor, const std::string& path,
                 std::string_view whole, TextSpan part, std::vector<std::int32_t>& ids, std::vector<TextSpan>& spans);

}  // namespace zero
