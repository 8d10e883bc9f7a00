#pragma once
// Token ids of a long text, piece by piece, equal to those of the text encoded as one string: BOS, the text with its
// newlines, EOS. Where the tokenizer allows it the text is cut before newlines, so that memory does not grow with it.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "zero/data/text_encoder.h"

namespace zero {

/// The name of this rule. Changes whenever ids of the same text and tokenizer would.
inline constexpr const char* text_rule = "one document per file: BOS + whole text + EOS, version 1";

/// Calls `emit` with the ids of the file at `path` in order, a piece at a time. InputError when it cannot be read or is empty.
void encode_text_file(const std::string& path, const TextEncoder& encoder,
                      const std::function<void(const std::vector<int>&)>& emit, std::int64_t piece_bytes = 1 << 20);

}  // namespace zero
