#pragma once
// Charsmap: SentencePiece's precompiled rules of normalisation, applied as Hugging Face's tokenizers do (the crate
// spm_precompiled, and normalizers/precompiled.rs), which sometimes differs from SentencePiece. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/pipeline/aligned_text.h"

namespace zero {

class Charsmap {
 public:
  /// `encoded` is base64. Throws InputError, which begins with `place`, if it is not a map that can be walked safely.
  Charsmap(const std::string& encoded, const std::string& place);

  /// A grapheme of less than 6 bytes is looked up as a whole, else its characters one by one. The shortest rule that
  /// matches its beginning replaces all of it. The text is valid UTF-8.
  void apply(AlignedText& text) const;

 private:
  std::optional<std::string_view> find(std::string_view chunk) const;
  std::vector<std::uint32_t> units_;  // a double array, as the Darts-clone library packs it
  std::string texts_;
};

}  // namespace zero
