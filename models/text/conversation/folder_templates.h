#pragma once
// FolderTemplates: the chat templates of a model directory and the special tokens that they see. They are found as in
// transformers. Does not include LibTorch.
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

  /// Reads chat_template.jinja and additional_chat_templates/NAME.jinja. If these are missing, reads chat_template from
  /// tokenizer_config.json: a string, or a list of {"name", "template"}. Throws InputError for malformed files, and
  /// when require_own_files() does.
  static FolderTemplates read(const std::filesystem::path& folder);

  /// Returns the user's choice: a known template (models/text/known_chat_templates.h), or otherwise a file.
  static Source named(const std::string& choice);

  /// Returns "tool_use" for conversations with tools if it exists, otherwise "default". Returns nullptr if there is
  /// none.
  const Source* chosen(bool tools) const;

  std::map<std::string, Source> by_name;
  std::vector<std::pair<std::string, std::string>> tokens;  // "bos_token" and its text, ...; never empty
};

}  // namespace zero
