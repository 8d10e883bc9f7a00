#pragma once
// Normalizer: the changes that a tokenizer.json makes to a text before splitting it. Does not include LibTorch.
#include <memory>

#include "models/text/pipeline/aligned_text.h"

namespace zero {

class Component;

struct NormalizedText : AlignedText {
  bool first = false;      // starts where the whole text starts; needed by Metaspace's "first"
  bool continued = false;  // continues an earlier part of a longer text: nothing is prepended
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;  // the text is valid UTF-8; thread-safe
};

/// Throws InputError for an unknown type, field or value.
std::unique_ptr<const Normalizer> make_normalizer(Component component);

}  // namespace zero
