#pragma once
// FolderTemplates: the chat templates of a model directory and the special tokens that they see. It finds them as
// transformers does. No LibTorch.
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zero {

struct FolderTemplates {
  struct Source {
    std::string jinja;
    std::string place;  // file, for messages
  };

  /// Reads chat_template.jinja and additional_chat_templates/NAME.jinja, else chat_template of tokenizer_config.json: a
  /// string, or a list of {"name", "template"}. Throws InputError for malformed files, and as require_own_files() does.
  static FolderTemplates read(const std::filesystem::path& folder);

  /// A user's choice: a known template (models/text/known_chat_templates.h), else a file.
  static Source named(const std::string& choice);

  /// "tool_use" for conversations with tools if it exists, else "default". nullptr if there is none.
  const Source* chosen(bool tools) const;

  std::map<std::string, Source> by_name;
  std::vector<std::pair<std::string, std::string>> tokens;  // "bos_token" and its text, ...: those that have one
};

}  // namespace zero
