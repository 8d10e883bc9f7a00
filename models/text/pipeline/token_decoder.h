#pragma once
// TokenDecoder: how a tokenizer.json makes a text of pieces. No LibTorch.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

class Component;

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;

  /// Changes the pieces; side by side they are the text. Thread-safe.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

/// InputError for a type, a field or a value that is not known.
std::unique_ptr<const TokenDecoder> make_token_decoder(Component component);

/// Valid UTF-8: every longest beginning of a character that does not go on becomes one U+FFFD, and so does every other
/// byte that is none.
std::string to_utf8(std::string_view bytes);

}  // namespace zero
