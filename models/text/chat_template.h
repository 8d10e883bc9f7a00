#pragma once
// ChatTemplate: writes a conversation as one text. The template is the model directory's own Jinja string, rendered as
// in transformers' apply_chat_template (models/text/jinja). The assistant's spans come from generation blocks or,
// without any, from rendered prefixes (models/text/conversation/answer_spans.h). A few common templates are recognised
// by their content, ignoring blanks and quotes. Generation blocks are inserted into these. Does not include LibTorch.
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
  /// Recognises a known Jinja string. For any other, throws InputError with `place` and the known templates. `setting`
  /// is the option that names a template in messages.
  static ChatTemplate recognise(const std::string& jinja, const std::string& bos, const std::string& eos,
                                const std::string& place, const std::string& setting = "data.chat_template");

  /// Returns a template by name. For an unknown name, throws InputError with the known names.
  static ChatTemplate named(const std::string& name, const std::string& bos, const std::string& eos,
                            const std::string& setting = "data.chat_template");

  /// Loads a model directory's template (models/text/conversation/folder_templates.h). If `choice` is not empty, it
  /// names the template instead: a known one, or a file with a Jinja string. BOS and EOS are those that the folder
  /// names. If it names none, they are <s> and </s>, or empty if Tokenizer::load uses a tokenizer.json. Throws
  /// InputError if there is no template, or if it cannot be read.
  static ChatTemplate load(const std::string& directory, const std::string& choice = "",
                           const std::string& setting = "data.chat_template");

  /// The Jinja string of a model directory, known or not, to be written to a file. Returns nothing if there is no
  /// template.
  static std::optional<std::string> jinja_of(const std::string& directory);

  static const std::vector<std::string>& names();

  /// True if named() accepts the name.
  static bool is_known(const std::string& name);

  /// True if load() finds `choice`: a known template, or a file.
  static bool is_choice(const std::string& choice);

  /// Renders the conversation as training text. Throws InputError if the template rejects the conversation, if answers
  /// cannot be located, or if text would be lost (models/text/conversation/lost_text.h).
  RenderedChat render(const std::vector<Message>& messages, const ChatContext& context = {}) const;

  /// Renders the prompt for the next answer (transformers' add_generation_prompt). Throws InputError if the template
  /// rejects the conversation, or would lose any text other than answers.
  std::string prompt(const std::vector<Message>& messages, const ChatContext& context = {}) const;

  /// True if the rendered text depends on this key of the messages. False for keys that every template knows.
  bool reads(const std::string& key, const std::vector<Message>& messages, const ChatContext& context) const;

  /// The text that ends an answer ("</s>", "<|im_end|>", "<|eot_id|>"). A matching tokenizer has it as one special
  /// token.
  const std::string& end_of_turn() const { return end_of_turn_; }

  /// The name of a known template, otherwise "jinja".
  const std::string& name() const { return name_; }

  /// The words that follow "the chat template" in messages: the name of a known template, otherwise "of " and the file.
  std::string said() const { return place_.empty() ? name_ : "of " + place_; }

  /// The Jinja string, to be written to directories and files.
  const std::string& jinja() const { return jinja_; }

 private:
  ChatTemplate() = default;
  ChatTemplate(const KnownChatTemplate& known, const std::string& default_system, std::string jinja,
               const ConversationTokens& tokens);
  static std::optional<ChatTemplate> known(const std::string& jinja, const ConversationTokens& tokens);
  const ConversationTemplate& engine_for(const ChatContext& context) const;
  /// True if a known template certainly writes all of this conversation, so that the search for lost text is skipped.
  /// Throws InputError if roles do not alternate in a conversation of plain texts.
  bool writes_all(const std::vector<Message>& messages, const ChatContext& context) const;

  std::string name_;
  std::string place_;  // of an unknown template
  std::string jinja_;
  std::string end_of_turn_;
  std::shared_ptr<const ConversationTemplate> own_;
  std::shared_ptr<const ConversationTemplate> for_tools_;  // the folder's tool_use, for conversations with tools
  std::string no_tools_;                                   // why that template cannot be read
};

/// True if both render short conversations of a user and an assistant identically, with and without a system message.
bool write_alike(const ChatTemplate& a, const ChatTemplate& b);

}  // namespace zero
