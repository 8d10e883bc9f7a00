#pragma once
// Normalizer: what a tokenizer.json does to a text before it is divided. No LibTorch.
#include <memory>
#include <string>

namespace zero {

class Component;

/// A text, and whether its beginning is still that of the whole text: Metaspace's "first" asks for that.
struct NormalizedText {
  std::string text;
  bool first = false;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;  // of valid UTF-8. Thread-safe
};

/// InputError for a type, a field or a value that is not known.
std::unique_ptr<const Normalizer> make_normalizer(Component component);

}  // namespace zero
