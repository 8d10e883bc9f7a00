#pragma once
// Normalizer: a tokenizer.json's changes to a text before it is divided. No LibTorch.
#include <memory>

#include "models/text/pipeline/aligned_text.h"

namespace zero {

class Component;

struct NormalizedText : AlignedText {
  bool first = false;      // its beginning is still that of the whole text: Metaspace's "first" asks for that
  bool continued = false;  // it continues another text that was cut: nothing is put in front of it
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;  // of valid UTF-8. Thread-safe
};

/// Throws InputError for an unknown type, field or value.
std::unique_ptr<const Normalizer> make_normalizer(Component component);

}  // namespace zero
