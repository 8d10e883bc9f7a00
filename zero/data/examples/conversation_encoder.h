#pragma once
// ConversationEncoder: encodes an example as token ids, each marked as trained or not. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/text/chat_template.h"
#include "models/text/chat_tokenizer.h"
#include "zero/data/examples/conversation.h"

namespace zero {

class Tokenizer;

/// The tokens of a conversation that count in the loss: the assistant's text and its end token, or all tokens.
enum class TrainOn : std::uint8_t { assistant, all };

/// Parses "assistant" or "all". Throws InputError for any other name.
TrainOn train_on_of(const std::string& name);

struct EncodedExample {
  std::string text;  // as rendered
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> trained;  // 1 if the id is a target; the first never is
  std::string place;
  Example::Kind kind = Example::Kind::text;
  bool is_blank = false;  // true if an answer of a pair, or a judged one, is empty or white space
  bool unended = false;   // true if the last trained reply, completion or text ends without a special token
  std::string note = {};  // for previews: names what is omitted; empty: nothing
};

struct EncoderOptions {
  std::string model_directory;  // contains tokenizer_config.json and the chat template
  std::string chat_template;    // a known name, or a file; empty: the directory's own
  TrainOn train_on = TrainOn::assistant;
  std::string template_place = {};                      // where the template is named, for messages; may be empty
  std::string template_setting = "data.chat_template";  // the setting that names a template, for messages
};

class ConversationEncoder {
 public:
  /// Keeps no reference to the tokenizer. A directory without a template is an error only at the first conversation,
  /// since prompts and texts need no template. Throws InputError if the template's end of turn is not a special token
  /// of this tokenizer.
  ConversationEncoder(const Tokenizer& tokenizer, EncoderOptions options);

  /// Thread-safe. Texts, and prompts with completions, get BOS at their start and EOS at their end (Tokenizer::opening,
  /// closing), unless they already contain these tokens. Throws InputError if the template forbids the order of roles,
  /// or if the messages' training flags cannot be honoured. The error's message begins with the example's place.
  EncodedExample encode(const Example& example) const;

  /// The ids of a completion's prompt without the completion. They need not be a prefix of the example's ids.
  std::vector<std::int32_t> encode_prompt(const Example& completion) const;

  /// Throws InputError if conversations cannot be encoded.
  const ChatTemplate& chat_template() const;

  /// True if the chat template renders this key of a message into the example's text.
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
  std::string no_template_;  // reason for the missing template
};

}  // namespace zero
