#pragma once
// ChatTemplate: how a model writes a conversation as one text. The template is the model directory's own Jinja string;
// it is recognised by what it says (blanks and quotes do not matter) and rendered as transformers' apply_chat_template
// does, with the spans that an assistant wrote known by construction, not by search. No LibTorch.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct Message {
  std::string role;                            // "system", "user" or "assistant"
  std::string content;                         // UTF-8
  std::optional<bool> trained = std::nullopt;  // whether data said that it is, or is not
  bool operator==(const Message&) const = default;
};

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const TextSpan&) const = default;
};

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> trained;  // each answer of the assistant with the mark that ends it, but those said to be not
};

/// What a template says beside its words.
struct ChatTemplateSettings {
  std::string bos;  // text of the tokenizer's BOS, "" if none
  std::string eos;
  std::optional<std::string> default_system;  // ChatML: the system message of a conversation that has none
  bool starts_with_bos = false;               // ChatML
  std::string answer_prompt;                  // Alpaca: what add_generation_prompt appends after a user's turn
};

class ChatTemplate {
 public:
  /// Recognises a Jinja string. InputError, naming `place` and the known templates, when it is none of them. `setting`
  /// is where the user of the program gives a template's name, for messages.
  static ChatTemplate recognise(const std::string& jinja, const std::string& bos, const std::string& eos,
                                const std::string& place, const std::string& setting = "data.chat_template");

  /// By name; InputError with the known names otherwise.
  static ChatTemplate named(const std::string& name, const std::string& bos, const std::string& eos,
                            const std::string& setting = "data.chat_template");

  /// Of a model directory: chat_template.jinja, or chat_template of tokenizer_config.json, or the one called `name`
  /// when it is not empty. BOS and EOS come from tokenizer_config.json, else <s> and </s>. InputError when there is no
  /// template.
  static ChatTemplate load(const std::string& directory, const std::string& name = "",
                           const std::string& setting = "data.chat_template");

  /// The Jinja string of a model directory, known or not, for files that carry it on; nothing when there is none.
  static std::optional<std::string> jinja_of(const std::string& directory);

  static const std::vector<std::string>& names();

  /// Whether named() takes it.
  static bool is_known(const std::string& name);

  /// The conversation as training text. InputError for an order of roles that the template does not allow.
  RenderedChat render(const std::vector<Message>& messages) const;

  /// The text that asks for the next answer: transformers' add_generation_prompt.
  std::string prompt(const std::vector<Message>& messages) const;

  /// The mark that ends an answer: one special token of a tokenizer that fits ("</s>", "<|im_end|>", "<|eot_id|>").
  const std::string& end_of_turn() const { return end_of_turn_; }

  const std::string& name() const { return name_; }

  /// The Jinja string, for directories and files that carry it on.
  const std::string& jinja() const { return jinja_; }

 private:
  ChatTemplate(std::string name, std::string jinja, ChatTemplateSettings settings);
  RenderedChat write(const std::vector<Message>& messages, bool add_prompt) const;

  std::string name_;
  std::string jinja_;
  ChatTemplateSettings settings_;
  std::string end_of_turn_;
};

}  // namespace zero
