#pragma once
// TextEncoder: what turning a text into token ids needs of a tokenizer. No LibTorch.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "zero/data/fingerprint.h"

namespace zero {

class Tokenizer;

struct TextEncoder {
  /// The ids of a text as one string, without BOS and EOS. Thread-safe.
  std::function<std::vector<int>(std::string_view)> encode;
  Fingerprint fingerprint{};        // of the tokenizer's files
  std::int64_t vocab_size = 0;      // every id is below
  int bos = 1;                      // -1: none
  int eos = 2;                      // -1: none

  /// No piece spans a newline and no rule looks across one, so a text may be cut before a newline without changing ids.
  bool newline_stands_alone = false;
};

/// The encoder of a tokenizer, which must outlive it.
TextEncoder text_encoder_of(const Tokenizer& tokenizer);

}  // namespace zero
