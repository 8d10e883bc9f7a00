#pragma once
// ConversationEncoder: an example as token ids, each marked as trained or not. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"
#include "zero/data/examples/conversation.h"

namespace zero {

class Tokenizer;

/// What the loss of a conversation covers: the assistant's text and the token that ends it, or every token.
enum class TrainOn : std::uint8_t { assistant, all };

/// "assistant" or "all"; InputError otherwise.
TrainOn train_on_of(const std::string& name);

struct EncodedExample {
  std::string text;  // as rendered
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> trained;  // 1 where the id is a target; the first never is
  std::string place;
  Example::Kind kind = Example::Kind::text;
  bool unended = false;   // a conversation whose last trained answer ends with no special token
  std::string note = {};  // of a preview: what is left out of it; empty: nothing
};

struct EncoderOptions {
  std::string model_directory;  // of tokenizer_config.json and the chat template
  std::string chat_template;    // a known name, or a file; empty: the directory's own
  TrainOn train_on = TrainOn::assistant;
  std::string template_place = {};  // where the template is named, for messages; empty: nowhere
};

class ConversationEncoder {
 public:
  /// Keeps nothing of the tokenizer. A directory without a template is refused when the first conversation comes, since
  /// prompts and texts need none. InputError when the template's end of turn is no special token of this tokenizer.
  ConversationEncoder(const Tokenizer& tokenizer, EncoderOptions options);

  /// Thread-safe. Texts, and prompts with completions, get BOS in front and EOS behind (Tokenizer::opening,
  /// closing) unless they write them out themselves. InputError that begins with the example's place when its template does not allow its order of roles,
  /// or when what its messages say about training cannot be done.
  EncodedExample encode(const Example& example) const;

  /// InputError when conversations cannot be encoded.
  const ChatTemplate& chat_template() const;

  /// Whether a key of messages reaches the example's text by the chat template.
  bool reads(const std::string& key, const Example& example) const {
    return template_ && template_->reads(key, example.messages, example.context);
  }

 private:
  [[noreturn]] void refuse_template(const std::string& why) const;
  EncodedExample encode_chat(const Example& example) const;
  EncodedExample encode_plain(const Example& example) const;

  EncoderOptions options_;
  ChatTokenizer tokenizer_;
  std::vector<std::int32_t> opening_, closing_;
  std::optional<ChatTemplate> template_;
  std::string no_template_;  // why there is none
};

}  // namespace zero
