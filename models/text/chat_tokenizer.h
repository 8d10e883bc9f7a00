#pragma once
// ChatTokenizer: encodes a rendered conversation to the same ids as transformers, and locates each id's bytes.
//
// A tokenizer.json is executed as it is (models/text/pipeline). For a SentencePiece model that only merges, the ids are
// those of LlamaTokenizer. They differ from SentencePiece's ids, which plain texts use, in three ways:
// - added tokens in the text are recognised (models/text/added_token_finder.h);
// - by default only the text's very first piece gets a leading space;
// - merges follow a list of pairs, lowest rank first and leftmost among equals (Hugging Face tokenizers,
//   models/bpe/word.rs), and not the score of the merged piece.
//
// The list comes from tokenizer.json if the folder has one. Otherwise it is made from tokenizer.model as in
// transformers, ordered by the id of the merged piece and then the length of its left part. For any other SentencePiece
// model (unigram, or with a normaliser), SentencePiece itself encodes each text between added tokens separately. Does
// not include LibTorch.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat_template.h"

namespace zero {

class Tokenizer;

struct TokenizedText {
  std::vector<std::int32_t> ids;
  std::vector<TextSpan> spans;  // of each id in the text; empty for a space that the tokenizer prepended. No span
                                // includes white space that an added token consumes
};

class ChatTokenizer {
 public:
  /// `directory` holds tokenizer_config.json (legacy, add_prefix_space), and may hold tokenizer.json next to
  /// tokenizer.model. Throws InputError if they are broken.
  ChatTokenizer(const Tokenizer& tokenizer, const std::string& directory);
  ChatTokenizer(ChatTokenizer&&) noexcept;
  ~ChatTokenizer();

  /// Encodes valid UTF-8 of up to 2 GiB. With a tokenizer.json, white space that an added token consumes belongs to
  /// that token. Adds no BOS or EOS beyond those in the text. Thread-safe.
  TokenizedText encode(std::string_view text) const;

  /// The id of a text that is exactly one added token. Returns nothing otherwise.
  std::optional<std::int32_t> special(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace zero
