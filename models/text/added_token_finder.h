#pragma once
// AddedTokenFinder: finds added tokens in a text. Does not include LibTorch.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/added_tokens.h"
#include "models/text/chat_template.h"

namespace zero {

/// A part of a text: an added token, or (id -1) the text between two tokens. White space that a token consumes on
/// either side belongs to no part.
struct TextPart {
  std::int32_t id = -1;
  TextSpan span;
  TextSpan taken = span;  // also includes the white space that the token consumes
  bool operator==(const TextPart&) const = default;
};

class AddedTokenFinder {
 public:
  explicit AddedTokenFinder(const std::vector<AddedToken>& tokens);

  /// Splits valid UTF-8 text into non-empty parts, in order, as Hugging Face's tokenizers do (added_vocabulary.rs).
  /// From left to right the longest token matches: first tokens that are not `normalized`, then the others in the text
  /// between them. Thread-safe.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  class Pass {
   public:
    void add(const AddedToken& token);
    void sort();  // call this after adding all tokens; among equal tokens the first counts
    void split(std::string_view text, TextSpan where, std::vector<TextPart>& parts) const;

   private:
    const AddedToken* longest_at(std::string_view rest) const;
    std::vector<AddedToken> tokens_;  // ascending
    std::array<bool, 256> first_{};   // bytes with which a token begins
  };
  Pass as_written_, normalized_;
};

}  // namespace zero
