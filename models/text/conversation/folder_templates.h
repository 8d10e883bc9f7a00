#pragma once
// FolderTemplates: the chat templates of a model directory and the special tokens that they see, as transformers finds
// them. No LibTorch.
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

  /// chat_template.jinja and additional_chat_templates/NAME.jinja, else chat_template of tokenizer_config.json: a string,
  /// or a list of {"name", "template"}. InputError for files that break their form,
  /// and as of require_own_files().
  static FolderTemplates read(const std::filesystem::path& folder);

  /// What a user names: a known template (models/text/known_chat_templates.h), else a file.
  static Source named(const std::string& choice);

  /// "tool_use" for conversations with tools where there is one, else "default"; nullptr where there is none.
  const Source* chosen(bool tools) const;

  std::map<std::string, Source> by_name;
  std::vector<std::pair<std::string, std::string>> tokens;  // "bos_token" and its text, ...: those that have one
};

}  // namespace zero
