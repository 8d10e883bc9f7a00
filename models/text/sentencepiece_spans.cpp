#include "models/text/sentencepiece_spans.h"

#include <sentencepiece_processor.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

/// Empty spans in [from, end) are extended to the end of the next span that is not empty. Those after the last such
/// span copy it.
void fill_empty(std::vector<TextSpan>& spans, std::size_t from) {
  for (std::size_t i = spans.size(); i-- > from;)
    if (spans[i].begin >= spans[i].end && i + 1 < spans.size())
      spans[i].end = std::max(spans[i].begin, spans[i + 1].end);
  for (std::size_t i = from + 1; i < spans.size(); ++i)
    if (spans[i].begin >= spans[i].end) spans[i] = spans[i - 1];
}

}  // namespace

void add_located(const sentencepiece::SentencePieceProcessor& processor, const std::string& path,
                 std::string_view whole, TextSpan part, std::vector<std::int32_t>& ids, std::vector<TextSpan>& spans) {
  sentencepiece::ImmutableSentencePieceText found;
  const std::string_view content = whole.substr(part.begin, part.end - part.begin);
  const auto status = processor.Encode({content.data(), content.size()}, found.mutable_proto());
  if (!status.ok()) throw InputError(text(path, ": SentencePiece cannot encode with it: ", status.ToString()));
  const std::size_t first = spans.size();
  for (const auto& piece : found.pieces()) {
    ids.push_back(static_cast<std::int32_t>(piece.id()));
    spans.push_back({part.begin + piece.begin(), part.begin + piece.end()});
  }
  fill_empty(spans, first);
}

}  // namespace zero
