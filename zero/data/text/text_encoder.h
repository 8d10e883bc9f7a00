#pragma once
// TextEncoder: the operations and data of a tokenizer that are needed to encode a text. No LibTorch.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/fingerprint.h"

namespace zero {

class Tokenizer;

struct TextEncoder {
  /// Encodes a text without opening and closing ids. `inside`: the text continues an earlier chunk. Thread-safe.
  std::function<std::vector<int>(std::string_view text, bool inside)> encode;
  /// Returns the first position at or after `from` where cutting the text changes no ids; the text's end if there is
  /// none.
  std::function<std::size_t(std::string_view text, std::size_t from)> next_cut;
  Fingerprint fingerprint{};                         // of the tokenizer's files
  std::int64_t vocab_size = 0;                       // every id is below it
  std::vector<std::int32_t> opening{1}, closing{2};  // ids before and after a document: BOS and EOS
};

/// Returns the encoder of a tokenizer, which must outlive the encoder.
TextEncoder text_encoder_of(const Tokenizer& tokenizer);

}  // namespace zero
