#pragma once
// TokenDecoder: the rule by which a tokenizer.json joins pieces to a text. No LibTorch.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

class Component;

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;

  /// Changes the pieces. Their concatenation is the text. Thread-safe.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

/// Throws InputError for an unknown type, field or value.
std::unique_ptr<const TokenDecoder> make_token_decoder(Component component);

/// Valid UTF-8. Every longest valid beginning of a character that breaks off becomes one U+FFFD, and so does every
/// other invalid byte.
std::string to_utf8(std::string_view bytes);

}  // namespace zero
