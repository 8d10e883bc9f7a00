#pragma once
// ConversationTemplate: a model's chat template, run on conversations in JSON with tools, calls and thoughts. It sees
// the variables that transformers 5's apply_chat_template passes. Does not include LibTorch.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/chat_message.h"
#include "models/text/conversation/folder_templates.h"
#include "models/text/jinja/template.h"

namespace zero {

struct ConversationText {
  std::string text;
  /// The code points [begin, end) that each generation block wrote, including empty blocks. Not set if the template has
  /// no such block.
  std::optional<std::vector<jinja::Rendered::Span>> generated;
  std::vector<jinja::Rendered::Span> generated_bytes;  // the same in bytes
  bool generated_in_place = true;                      // see jinja::Rendered
};

class ConversationTemplate {
 public:
  using Tokens = std::vector<std::pair<std::string, std::string>>;

  /// `tokens` holds the special tokens by name. If the template cannot be read, throws InputError whose message begins
  /// with the template's place.
  ConversationTemplate(const FolderTemplates::Source& source, Tokens tokens);

  /// `request` is an object with "messages" (a non-empty list of objects), "tools" (a list, or null), "variables" and
  /// "add_generation_prompt". "variables" is an object with more names, which take precedence over the special tokens.
  /// Null keys of a message are dropped. A thought under any of thought_keys is passed as both reasoning_content and
  /// thinking. Throws jinja::TemplateError if the template rejects the conversation or fails, and InputError for a
  /// malformed request. Thread-safe.
  ConversationText render(const nlohmann::ordered_json& request) const;

  /// Does the same for the first `count` messages (at least one) if they have only role and content.
  ConversationText render(const std::vector<Message>& messages, std::size_t count, bool prompt) const;

  /// See jinja::Template::mentions().
  bool mentions(std::string_view name) const { return template_.mentions(name); }
  bool has_string(std::string_view string) const { return template_.has_string(string); }

  /// A special token of the template by name ("eos_token"). Empty if there is none.
  std::string_view token(std::string_view name) const;

 private:
  ConversationText shown(jinja::Rendered rendered) const;

  jinja::Template template_;
  Tokens tokens_;
};

/// The templates of a folder, which are read at first use.
class ConversationTemplates {
 public:
  /// `choice` is a known template's name, a file with a template, or empty. A chosen template takes precedence over the
  /// folder's.
  ConversationTemplates(const std::string& folder, const std::string& choice);

  /// Like ConversationTemplate::render, using the template for conversations with or without tools. Throws InputError
  /// if the folder has no template.
  ConversationText render(const nlohmann::ordered_json& request);

 private:
  std::string folder_;
  FolderTemplates templates_;
  std::vector<std::pair<const FolderTemplates::Source*, ConversationTemplate>> read_;
};

}  // namespace zero
