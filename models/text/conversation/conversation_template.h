#pragma once
// ConversationTemplate: a model's chat template as it is, run on conversations in JSON with all that they hold: tools,
// calls, thoughts. What the template sees is what transformers 5's apply_chat_template shows it. No LibTorch.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/conversation/folder_templates.h"
#include "models/text/jinja/template.h"

namespace zero {

struct ConversationText {
  std::string text;
  /// Code points [begin, end) that generation blocks wrote, empty ones too; nothing where the template has no such block.
  std::optional<std::vector<jinja::Rendered::Span>> generated;
  bool generated_in_place = true;  // as of jinja::Rendered
};

class ConversationTemplate {
 public:
  using Tokens = std::vector<std::pair<std::string, std::string>>;

  /// `tokens`: the special tokens by name. InputError that begins with `place` for a template that cannot be read.
  ConversationTemplate(const FolderTemplates::Source& source, Tokens tokens);

  /// `request`: an object with "messages", a list of objects that is not empty, "tools" (a list, or null), "variables" (an
  /// object: further names, before the special tokens) and "add_generation_prompt". Keys of a message that are null are
  /// left out; reasoning_content, thinking and reasoning are one thing under the first two names. jinja::TemplateError
  /// when the template refuses the conversation or fails; InputError for a request of another form. Thread-safe.
  ConversationText render(const nlohmann::ordered_json& request) const;

  /// As of jinja::Template.
  bool mentions(std::string_view name) const { return template_.mentions(name); }
  bool has_string(std::string_view string) const { return template_.has_string(string); }

  /// A special token of the template's by its name ("eos_token"); empty where it has none.
  std::string_view token(std::string_view name) const;

 private:
  jinja::Template template_;
  Tokens tokens_;
};

/// The templates of a folder, read when they are first chosen.
class ConversationTemplates {
 public:
  /// `choice`: a known template's name, or a file with one, that goes before the folder's; empty: none.
  ConversationTemplates(const std::string& folder, const std::string& choice);

  /// As ConversationTemplate::render, by the template for conversations with tools, or without. InputError where the folder
  /// has none.
  ConversationText render(const nlohmann::ordered_json& request);

 private:
  std::string folder_;
  FolderTemplates templates_;
  std::vector<std::pair<const FolderTemplates::Source*, ConversationTemplate>> read_;
};

}  // namespace zero
