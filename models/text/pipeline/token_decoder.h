#pragma once
// TokenDecoder: joins pieces to a text as a tokenizer.json says. Does not include LibTorch.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

class Component;

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;

  /// Changes the pieces so that their concatenation is the text. Thread-safe.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

/// Throws InputError for an unknown type, field or value.
std::unique_ptr<const TokenDecoder> make_token_decoder(Component component);

/// Converts bytes to valid UTF-8. The longest valid beginning of a truncated character becomes one U+FFFD. So does
/// every other invalid byte.
std::string to_utf8(std::string_view bytes);

}  // namespace zero
