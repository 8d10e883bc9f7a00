#pragma once
// ChatTemplate: how a model writes a conversation as one text. The template is the model directory's own Jinja string,
// rendered as transformers' apply_chat_template does. A few that are common are recognised by what they say (blanks and
// quotes do not matter): there the spans that an assistant wrote are known by construction. Any other is run as it is
// (models/text/jinja), and its spans are those of its generation blocks, else found by rendering prefixes
// (models/text/conversation/answer_spans.h). No LibTorch.
#include <memory>
#include <optional>
#include <string>
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

class ChatTemplate {
 public:
  /// Recognises a Jinja string. InputError, naming `place` and the known templates, when it is none of them. `setting`
  /// is where the user of the program gives a template's name, for messages.
  static ChatTemplate recognise(const std::string& jinja, const std::string& bos, const std::string& eos,
                                const std::string& place, const std::string& setting = "data.chat_template");

  /// By name; InputError with the known names otherwise.
  static ChatTemplate named(const std::string& name, const std::string& bos, const std::string& eos,
                            const std::string& setting = "data.chat_template");

  /// Of a model directory: its template (models/text/conversation/folder_templates.h), or the one called `name` when it is not empty.
  /// BOS and EOS come from tokenizer_config.json, else <s> and </s>. InputError when there is no template, or it cannot
  /// be read.
  static ChatTemplate load(const std::string& directory, const std::string& name = "",
                           const std::string& setting = "data.chat_template");

  /// The Jinja string of a model directory, known or not, for files that carry it on; nothing when there is none.
  static std::optional<std::string> jinja_of(const std::string& directory);

  static const std::vector<std::string>& names();

  /// Whether named() takes it.
  static bool is_known(const std::string& name);

  /// The conversation as training text. InputError for a conversation that the template does not allow, or whose answers
  /// cannot be told from the rest.
  RenderedChat render(const std::vector<Message>& messages) const;

  /// The text that asks for the next answer: transformers' add_generation_prompt.
  std::string prompt(const std::vector<Message>& messages) const;

  /// The mark that ends an answer: one special token of a tokenizer that fits ("</s>", "<|im_end|>", "<|eot_id|>").
  const std::string& end_of_turn() const { return end_of_turn_; }

  /// That of a known template, else "jinja".
  const std::string& name() const { return name_; }

  /// The Jinja string, for directories and files that carry it on.
  const std::string& jinja() const { return jinja_; }

 private:
  ChatTemplate() = default;
  ChatTemplate(std::string name, std::string jinja, ChatTemplateSettings settings);
  static std::optional<ChatTemplate> known(const std::string& jinja, const std::string& bos, const std::string& eos);
  RenderedChat write(const std::vector<Message>& messages, bool add_prompt) const;

  std::string name_;
  std::string jinja_;
  ChatTemplateSettings settings_;
  std::string end_of_turn_;
  std::shared_ptr<const ConversationTemplate> own_;  // of a template that is none of those known
};

}  // namespace zero
