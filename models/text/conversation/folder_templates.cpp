#include "models/text/conversation/folder_templates.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/own_files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/known_chat_templates.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The text of a token: a string, or an object with "content"; empty for anything else.
std::string content_of(const json& token) {
  const json content = token.is_object() ? token.value("content", json()) : token;
  return content.is_string() ? content.get<std::string>() : "";
}

void add_tokens(const json& config, std::vector<std::pair<std::string, std::string>>& tokens) {
  if (!config.is_object()) return;
  for (const auto& [name, value] : config.items()) {
    const bool known =
        std::any_of(tokens.begin(), tokens.end(), [&name = name](const auto& token) { return token.first == name; });
    if (!known && name.ends_with("_token") && !content_of(value).empty()) tokens.emplace_back(name, content_of(value));
  }
}

void add_listed(const json& list, const std::string& place, std::map<std::string, FolderTemplates::Source>& by_name) {
  if (list.is_string()) by_name["default"] = {list.get<std::string>(), place};
  if (!list.is_array()) return;
  for (const json& entry : list) {
    if (!entry.is_object() || !entry.value("name", json()).is_string() || !entry.value("template", json()).is_string())
      throw InputError(
          text(place, ": \"chat_template\" must be a string, or a list of objects with \"name\" and \"template\""));
    by_name[entry["name"].get<std::string>()] = {entry["template"].get<std::string>(), place};
  }
}

}  // namespace

FolderTemplates FolderTemplates::read(const fs::path& folder) {
  FolderTemplates found;
  const fs::path others = folder / "additional_chat_templates";
  require_own_file(folder.string(), others.string());
  for (const fs::path& place : {folder, others}) require_own_files(place.string(), {".json", ".jinja"});
  const std::string config_path = folder / "tokenizer_config.json", single = folder / "chat_template.jinja";
  const json config = read_json_object(config_path);
  add_listed(config.value("chat_template", json()), config_path, found.by_name);
  if (is_there(single)) found.by_name = {{"default", {read_text_file(single), single}}};
  for (const std::string& name : names_in(others))
    if (const fs::path path = others / name; path.extension() == ".jinja")
      found.by_name[path.stem()] = {read_text_file(path), path};
  add_tokens(config, found.tokens);
  for (const char* more : {"extra_special_tokens", "model_specific_special_tokens"})
    add_tokens(config.value(more, json()), found.tokens);
  add_tokens(read_json_object(folder / "special_tokens_map.json"), found.tokens);
  return found;
}

FolderTemplates::Source FolderTemplates::named(const std::string& choice) {
  if (const KnownChatTemplate* known = known_chat_template(choice)) return {std::string(known->jinja), choice};
  return {read_text_file(choice), choice};
}

const FolderTemplates::Source* FolderTemplates::chosen(bool tools) const {
  const auto tool_use = by_name.find("tool_use"), standard = by_name.find("default");
  if (tools && tool_use != by_name.end()) return &tool_use->second;
  return standard == by_name.end() ? nullptr : &standard->second;
}

}  // namespace zero
