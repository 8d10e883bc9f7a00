#pragma once
// PreTokenizer: splits a text into words, as a tokenizer.json specifies. The model encodes each word separately. Does
// not include LibTorch.
#include <memory>

namespace zero {

class Component;
struct Splits;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Splits& splits) const = 0;  // thread-safe
};

/// Throws InputError for an unknown type, field or value.
std::unique_ptr<const PreTokenizer> make_pre_tokenizer(Component component);

}  // namespace zero
