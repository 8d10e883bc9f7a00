#pragma once
// ChatTemplate: how a model writes a conversation as one text. The template is the model directory's own Jinja string,
// rendered as transformers' apply_chat_template does. A few that are common are recognised by what they say (blanks and
// quotes do not matter): there the spans that an assistant wrote are known by construction. Any other is run as it is
// (models/text/jinja), and its spans are those of its generation blocks, else found by rendering prefixes
// (models/text/conversation/answer_spans.h). No LibTorch.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/text/chat_message.h"

namespace zero {

/// What a template says beside its words.
struct ChatTemplateSettings {
  std::string bos;  // text of the tokenizer's BOS, "" if none
  std::string eos;
  std::optional<std::string> default_system;  // ChatML: the system message of a conversation that has none
  bool starts_with_bos = false;               // ChatML
  std::string answer_prompt;                  // Alpaca: what add_generation_prompt appends after a user's turn
};

class ConversationTemplate;
using ConversationTokens = std::vector<std::pair<std::string, std::string>>;  // special tokens by name

class ChatTemplate {
 public:
  /// Recognises a Jinja string. InputError, naming `place` and the known templates, when it is none of them. `setting`
  /// is where the user of the program gives a template's name, for messages.
  static ChatTemplate recognise(const std::string& jinja, const std::string& bos, const std::string& eos,
                                const std::string& place, const std::string& setting = "data.chat_template");

  /// By name; InputError with the known names otherwise.
  static ChatTemplate named(const std::string& name, const std::string& bos, const std::string& eos,
                            const std::string& setting = "data.chat_template");

  /// Of a model directory: its templates (models/text/conversation/folder_templates.h), or the one that `choice` names
  /// when it is not empty: a known one, else a file with a Jinja string. BOS and EOS are those that the folder names;
  /// where it names none <s> and </s>, or nothing beside a tokenizer.json that counts. InputError when there is no
  /// template, or it cannot be read.
  static ChatTemplate load(const std::string& directory, const std::string& choice = "",
                           const std::string& setting = "data.chat_template");

  /// The Jinja string of a model directory, known or not, for files that carry it on; nothing when there is none.
  static std::optional<std::string> jinja_of(const std::string& directory);

  static const std::vector<std::string>& names();

  /// Whether named() takes it.
  static bool is_known(const std::string& name);

  /// Whether load() finds what it names: a known template, or a file.
  static bool is_choice(const std::string& choice);

  /// The conversation as training text. InputError for a conversation that the template does not allow, whose answers
  /// cannot be told from the rest, or of which it would lose something (models/text/conversation/lost_text.h).
  RenderedChat render(const std::vector<Message>& messages, const ChatContext& context = {}) const;

  /// The text that asks for the next answer: transformers' add_generation_prompt. InputError for a conversation that the
  /// template does not allow, or of which it would lose something but an answer.
  std::string prompt(const std::vector<Message>& messages, const ChatContext& context = {}) const;

  /// Whether the text of a conversation hangs on a key of its messages beside those that every template knows.
  bool reads(const std::string& key, const std::vector<Message>& messages, const ChatContext& context) const;

  /// The mark that ends an answer: one special token of a tokenizer that fits ("</s>", "<|im_end|>", "<|eot_id|>").
  const std::string& end_of_turn() const { return end_of_turn_; }

  /// That of a known template, else "jinja".
  const std::string& name() const { return name_; }

  /// For messages, behind "the chat template": the name where it is known, else "of " and the file.
  std::string said() const { return place_.empty() ? name_ : "of " + place_; }

  /// The Jinja string, for directories and files that carry it on.
  const std::string& jinja() const { return jinja_; }

 private:
  ChatTemplate() = default;
  ChatTemplate(std::string name, std::string jinja, ChatTemplateSettings settings);
  static std::optional<ChatTemplate> known(const std::string& jinja, const std::string& bos, const std::string& eos);
  RenderedChat write(const std::vector<Message>& messages, bool add_prompt) const;
  std::shared_ptr<const ConversationTemplate> engine_for(const std::vector<Message>& messages,
                                                         const ChatContext& context) const;

  std::string name_;
  std::string place_;  // of a template that is none of those known
  std::string jinja_;
  ChatTemplateSettings settings_;
  std::string end_of_turn_;
  ConversationTokens tokens_;                              // that the template sees
  std::shared_ptr<const ConversationTemplate> own_;        // of a template that is none of those known
  std::shared_ptr<const ConversationTemplate> for_tools_;  // the folder's tool_use, for conversations with tools
  std::string no_tools_;                                   // why that one cannot be read
};

}  // namespace zero
