#pragma once
// Encodes text with SentencePiece and locates each id's bytes, for models that do more than merge. Does not include
// LibTorch.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/text_span.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace zero {

/// Encodes `part` of the text `whole` separately. Appends the ids and their spans in `whole`. Spans are whole
/// characters: ids that share a character (its bytes, or its normalised form) have the same span. A prefix that the
/// model adds shares the span of the first character. White space that the model removes is in no span. Alignment is
/// SentencePiece's. Throws InputError with `path` if SentencePiece cannot encode the text.
void add_located(const sentencepiece::SentencePieceProcessor& processor, const std::string& path,
                 std::string_view whole, TextSpan part, std::vector<std::int32_t>& ids, std::vector<TextSpan>& spans);

}  // namespace zero
