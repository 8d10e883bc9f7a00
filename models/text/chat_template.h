#pragma once
// ChatTemplate: writes a conversation as one text. The template is the model directory's own Jinja string, rendered as
// in transformers' apply_chat_template (models/text/jinja). The assistant's spans come from generation blocks, else
// from rendered prefixes (models/text/conversation/answer_spans.h). A few common templates are recognised by their
// content (blanks and quotes do not matter). These run with generation blocks put into them. No LibTorch.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/text/chat_message.h"

namespace zero {

class ConversationTemplate;
struct KnownChatTemplate;
using ConversationTokens = std::vector<std::pair<std::string, std::string>>;  // special tokens by name

class ChatTemplate {
 public:
  /// Recognises a Jinja string. Throws InputError, with `place` and the known templates, for an unknown one. `setting`
  /// is the option that names a template, for messages.
  static ChatTemplate recognise(const std::string& jinja, const std::string& bos, const std::string& eos,
                                const std::string& place, const std::string& setting = "data.chat_template");

  /// A template by name. Throws InputError with the known names for other names.
  static ChatTemplate named(const std::string& name, const std::string& bos, const std::string& eos,
                            const std::string& setting = "data.chat_template");

  /// The template of a model directory (models/text/conversation/folder_templates.h), or the one that a non-empty
  /// `choice` names: a known one, else a file with a Jinja string. BOS and EOS are those that the folder names. If it
  /// names none they are <s> and </s>, or nothing with a tokenizer.json that counts. Throws InputError if there is no
  /// template, or it cannot be read.
  static ChatTemplate load(const std::string& directory, const std::string& choice = "",
                           const std::string& setting = "data.chat_template");

  /// The Jinja string of a model directory, known or not, for a file that will contain it. None if there
  /// is no template.
  static std::optional<std::string> jinja_of(const std::string& directory);

  static const std::vector<std::string>& names();

  /// True if named() accepts it.
  static bool is_known(const std::string& name);

  /// True if load() finds it: a known template, or a file.
  static bool is_choice(const std::string& choice);

  /// The conversation as training text. Throws InputError if the template rejects the conversation, if its answers
  /// cannot be located, or if text would be lost (models/text/conversation/lost_text.h).
  RenderedChat render(const std::vector<Message>& messages, const ChatContext& context = {}) const;

  /// The text that asks for the next answer: transformers' add_generation_prompt. Throws InputError if the template
  /// rejects the conversation, or would lose anything but an answer.
  std::string prompt(const std::vector<Message>& messages, const ChatContext& context = {}) const;

  /// True if the rendered text depends on this key of the messages. Keys that every template knows do not count.
  bool reads(const std::string& key, const std::vector<Message>& messages, const ChatContext& context) const;

  /// The mark that ends an answer. It is one special token of a matching tokenizer ("</s>", "<|im_end|>",
  /// "<|eot_id|>").
  const std::string& end_of_turn() const { return end_of_turn_; }

  /// The name of a known template, else "jinja".
  const std::string& name() const { return name_; }

  /// For messages, after "the chat template": the name if it is known, else "of " and the file.
  std::string said() const { return place_.empty() ? name_ : "of " + place_; }

  /// The Jinja string, for directories and files that will contain it.
  const std::string& jinja() const { return jinja_; }

 private:
  ChatTemplate() = default;
  ChatTemplate(const KnownChatTemplate& known, const std::string& default_system, std::string jinja,
               const ConversationTokens& tokens);
  static std::optional<ChatTemplate> known(const std::string& jinja, const ConversationTokens& tokens);
  const ConversationTemplate& engine_for(const ChatContext& context) const;
  /// True if a known template writes this conversation whole. The search for lost text is then skipped. Throws
  /// InputError for a role out of turn in a conversation of texts.
  bool writes_all(const std::vector<Message>& messages, const ChatContext& context) const;

  std::string name_;
  std::string place_;  // of an unknown template
  std::string jinja_;
  std::string end_of_turn_;
  std::shared_ptr<const ConversationTemplate> own_;
  std::shared_ptr<const ConversationTemplate> for_tools_;  // the folder's tool_use, for conversations with tools
  std::string no_tools_;                                   // the reason why that one cannot be read
};

/// True if both write short conversations of a user and an assistant alike, with a system message and without one.
bool write_alike(const ChatTemplate& a, const ChatTemplate& b);

}  // namespace zero
