#pragma once
// Normalizer: what a tokenizer.json does to a text before it is divided. No LibTorch.
#include <memory>

#include "models/text/pipeline/aligned_text.h"

namespace zero {

class Component;

struct NormalizedText : AlignedText {
  bool first = false;      // its beginning is still that of the whole text: Metaspace's "first" asks for that
  bool continued = false;  // it goes on where another was cut: nothing is put in front of it
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;  // of valid UTF-8. Thread-safe
};

/// InputError for a type, a field or a value that is not known.
std::unique_ptr<const Normalizer> make_normalizer(Component component);

}  // namespace zero
