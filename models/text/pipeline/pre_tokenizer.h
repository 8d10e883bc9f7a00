#pragma once
// PreTokenizer: a tokenizer.json's division of a text into words, which go to the model one by one. No LibTorch.
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
