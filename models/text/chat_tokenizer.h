#pragma once
// ChatTokenizer: the ids that transformers gives a rendered conversation, with the bytes behind each.
//
// A tokenizer.json is executed (models/text/pipeline). With a SentencePiece model that only merges, the ids are
// LlamaTokenizer's. These differ from SentencePiece's, which plain texts use, in three ways:
// - added tokens in the text are recognised (models/text/added_token_finder.h);
// - by default only the text's very first piece gets a leading space;
// - merges follow a list of pairs, the lower rank and then the left one first (Hugging Face tokenizers,
//   models/bpe/word.rs), not the score of the result.
//
// The list is tokenizer.json's if the folder has one. Otherwise transformers makes it from tokenizer.model, in the
// order (id of the merged piece, length of its left part). With any other SentencePiece model (unigram, or with a
// normaliser) SentencePiece itself encodes the texts between added tokens, each as a text of its own. No LibTorch.
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
  std::vector<TextSpan> spans;  // of each id in the text; empty for a space that the tokenizer put in front. No span
                                // includes white space that an added token consumes
};

class ChatTokenizer {
 public:
  /// `directory` holds tokenizer_config.json (legacy, add_prefix_space), and may hold tokenizer.json next to
  /// tokenizer.model. Throws InputError if they are broken.
  ChatTokenizer(const Tokenizer& tokenizer, const std::string& directory);
  ChatTokenizer(ChatTokenizer&&) noexcept;
  ~ChatTokenizer();

  /// Encodes valid UTF-8 of up to 2 GiB. With a tokenizer.json, white space that an added token consumes belongs to it.
  /// It adds no BOS or EOS to those in the text. Thread-safe.
  TokenizedText encode(std::string_view text) const;

  /// The id of a text that is one added token.
  std::optional<std::int32_t> special(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace zero
