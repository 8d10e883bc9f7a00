#pragma once
// Charsmap: SentencePiece's precompiled normalisation rules, applied as in Hugging Face's tokenizers (the crate
// spm_precompiled, and normalizers/precompiled.rs). Results sometimes differ from SentencePiece's. Does not include
// LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/pipeline/aligned_text.h"

namespace zero {

class Charsmap {
 public:
  /// `encoded` is base64. If the map cannot be walked safely, throws InputError, whose message begins with `place`.
  Charsmap(const std::string& encoded, const std::string& place);

  /// Normalises valid UTF-8. A grapheme of fewer than 6 bytes is looked up as a whole. Any other grapheme is looked up
  /// character by character. The shortest rule that matches the beginning of a looked-up text replaces all of that
  /// text.
  void apply(AlignedText& text) const;

 private:
  std::optional<std::string_view> find(std::string_view chunk) const;
  std::vector<std::uint32_t> units_;  // a double array, as the Darts-clone library packs it
  std::string texts_;
};

}  // namespace zero
