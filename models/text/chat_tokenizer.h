#pragma once
// ChatTokenizer: the ids that transformers gives a rendered conversation, with the bytes behind each.
//
// A tokenizer.json is executed (models/text/pipeline). With a SentencePiece model that only merges they are those of
// LlamaTokenizer. That differs from SentencePiece, by which plain texts are encoded, in three ways: added tokens written out in the text
// are taken as such (models/text/added_token_finder.h); by default only the text's very first piece gets a space in
// front; and merges go by a list of pairs, the lower rank and then the left one first (Hugging Face tokenizers,
// models/bpe/word.rs), not by the score of what they make. The list is tokenizer.json's where one lies in the folder;
// else transformers makes it of tokenizer.model, in the order (id of the merged piece, length of its left part). With any
// other SentencePiece model (unigram, or with a normaliser) the texts between added tokens go through SentencePiece
// itself, each as a text of its own. No LibTorch.
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
  std::vector<TextSpan> spans;  // of each id in the text; empty for a space that the tokenizer put in front. White
                                // space that an added token takes from beside it belongs to none
};

class ChatTokenizer {
 public:
  /// `directory` holds tokenizer_config.json (legacy, add_prefix_space); tokenizer.json, if any, lies beside
  /// tokenizer.model. InputError when they are broken.
  ChatTokenizer(const Tokenizer& tokenizer, const std::string& directory);
  ChatTokenizer(ChatTokenizer&&) noexcept;
  ~ChatTokenizer();

  /// With a tokenizer.json white space that an added token takes from beside it belongs to that. Of valid UTF-8, up to 2 GiB. No BOS or EOS but what the text writes out. Thread-safe.
  TokenizedText encode(std::string_view text) const;

  /// The id of a text that is one added token.
  std::optional<std::int32_t> special(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace zero
