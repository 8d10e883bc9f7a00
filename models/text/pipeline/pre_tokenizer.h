#pragma once
// PreTokenizer: how a tokenizer.json divides a text into the words that go to the model one by one. No LibTorch.
#include <memory>

namespace zero {

class Component;
struct Splits;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Splits& splits) const = 0;  // thread-safe
};

/// InputError for a type, a field or a value that is not known.
std::unique_ptr<const PreTokenizer> make_pre_tokenizer(Component component);

}  // namespace zero
