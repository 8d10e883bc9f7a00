#pragma once
// TextEncoder: what turning a text into token ids needs of a tokenizer. No LibTorch.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/fingerprint.h"

namespace zero {

class Tokenizer;

struct TextEncoder {
  /// The ids of a text, without those around it. `inside`: it goes on where another was cut. Called by several threads.
  std::function<std::vector<int>(std::string_view text, bool inside)> encode;
  /// The first place from `from` on where a text may be cut without changing ids; the text's end when there is none.
  std::function<std::size_t(std::string_view text, std::size_t from)> next_cut;
  Fingerprint fingerprint{};                         // of the tokenizer's files
  std::int64_t vocab_size = 0;                       // every id is below
  std::vector<std::int32_t> opening{1}, closing{2};  // ids in front of a document and behind it: BOS and EOS
};

/// The encoder of a tokenizer, which must outlive it.
TextEncoder text_encoder_of(const Tokenizer& tokenizer);

}  // namespace zero
