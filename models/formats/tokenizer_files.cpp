#include "models/formats/tokenizer_files.h"

#include <array>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/own_files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/chat_template.h"
#include "models/text/conversation/folder_templates.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array<const char*, 5> named_tokens{"bos_token", "eos_token", "unk_token", "pad_token",
                                                  "additional_special_tokens"};

using Files = std::map<std::string, std::string>;  // file name -> content

bool same_folder(const std::string& a, const std::string& b) { return is_same_place(a, b); }

json settings_of(const TokenizerSource& source) {
  return source.settings.empty() ? json::object() : read_json_object(source.settings + "/tokenizer_config.json");
}

/// The text of a token, given as a string or an object with "content"; empty for anything else.
std::string content_of(const json& token) {
  const json content = token.is_object() ? token.value("content", json()) : token;
  return content.is_string() ? content.get<std::string>() : "";
}

bool is_special(const std::string& token, const json& config, const json& map) {
  for (const json* holder : {&config, &map})
    for (const char* name : named_tokens) {
      const json value = holder->value(name, json());
      for (const json& item : value.is_array() ? value : json::array({value}))
        if (content_of(item) == token) return true;
    }
  return false;
}

/// Converts added_tokens.json, the older format, to tokenizer_config.json's.
json decoder_of_older_file(const std::string& home, const json& config) {
  const std::string path = home + "/added_tokens.json";
  const json map = read_json_object(home + "/special_tokens_map.json"), tokens = read_json_object(path);
  json decoder = json::object();
  for (const auto& [content, id] : tokens.items()) {
    const bool special = is_special(content, config, map);
    decoder[std::to_string(json_index(id, content, 1 << 28, path))] = {{"content", content},     {"lstrip", false},
                                                                       {"normalized", !special}, {"rstrip", false},
                                                                       {"single_word", false},   {"special", special}};
  }
  return decoder;
}

/// The tokens that the tokenizer's folder adds, in the form for Tokenizer::load.
json added_tokens_of(const std::string& home) {
  const json config = read_json_object(home + "/tokenizer_config.json");
  const json decoder = config.value("added_tokens_decoder", json());
  if (!decoder.is_null() && !decoder.is_object())
    refuse_json(home + "/tokenizer_config.json", "added_tokens_decoder", "an object", decoder);
  return decoder.is_null() || decoder.empty() ? decoder_of_older_file(home, config) : decoder;
}

void add_missing(json& config, const char* key, const json& value) {
  if (!config.contains(key)) config[key] = value;
}

void name_tokens(json& config, const Tokenizer& tokenizer) {
  const auto name = [&](const char* key, std::optional<std::int32_t> id) {
    if (id) add_missing(config, key, tokenizer.piece(*id));
  };
  name("bos_token", tokenizer.bos());
  name("eos_token", tokenizer.eos());
  name("unk_token", tokenizer.unk());
}

json carried_config(const TokenizerSource& source) {
  const std::string home = tokenizer_home(source.tokenizer);
  const bool own = is_there(source.settings + "/tokenizer_config.json");
  json config = settings_of(source);
  if (!own || same_folder(home, source.settings))
    for (const char* name : named_tokens)
      if (const json map = read_json_object(home + "/special_tokens_map.json"); map.contains(name))
        add_missing(config, name, map[name]);
  if (json added = added_tokens_of(home); added.empty())
    config.erase("added_tokens_decoder");
  else
    config["added_tokens_decoder"] = std::move(added);
  const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
  name_tokens(config, tokenizer);
  if (!own && config.contains("unk_token"))
    add_missing(config, "pad_token", config["unk_token"]);  // not EOS, which a trainer would exclude from the loss
  // a lone tokenizer.model needs this class; next to a tokenizer.json any class works
  const json known = config.value("tokenizer_class", json());
  if (!known.is_string() ||
      (!is_there(home + "/tokenizer.json") && !known.get<std::string>().starts_with("LlamaTokenizer")))
    config["tokenizer_class"] = "LlamaTokenizer";
  // the class ignores the model's setting for a leading space
  if (!is_there(home + "/tokenizer.json") && !tokenizer.add_dummy_prefix()) config["add_prefix_space"] = false;
  add_missing(config, "add_bos_token", true);
  add_missing(config, "add_eos_token", false);
  add_missing(config, "clean_up_tokenization_spaces", false);
  add_missing(config, "legacy", false);
  // a list of named templates stays a list, unless another template overrides it
  const bool list = config.value("chat_template", json()).is_array() && source.chat_template.empty() &&
                    !is_there(source.settings + "/chat_template.jinja");
  if (const auto jinja = chat_template_of(source); jinja && !list) config["chat_template"] = *jinja;
  return config;
}

json special_tokens_map(const std::string& settings, const json& config) {
  json map = settings.empty() ? json::object() : read_json_object(settings + "/special_tokens_map.json");
  for (const char* name : named_tokens)
    if (config.contains(name) && !config[name].is_null()) add_missing(map, name, config[name]);
  return map;
}

Files made_files(const TokenizerSource& source) {
  const std::string home = tokenizer_home(source.tokenizer);
  const json config = carried_config(source);
  Files files{{"tokenizer.model", read_text_file(Tokenizer::load(source.tokenizer).model_path(), 256 << 20)},
              {"tokenizer_config.json", config.dump(2) + "\n"},
              {"special_tokens_map.json", special_tokens_map(source.settings, config).dump(2) + "\n"}};
  if (is_there(home + "/tokenizer.json")) files["tokenizer.json"] = read_text_file(home + "/tokenizer.json", 256 << 20);
  if (config.contains("chat_template") && config["chat_template"].is_string())
    files["chat_template.jinja"] = config["chat_template"].get<std::string>();
  return files;
}

Files copied_files(const std::string& folder) {
  require_own_files(folder, {".json", ".jinja", ".txt"});
  Files files;
  for (const std::string& name : tokenizer_file_names())
    if (is_there(fs::path(folder) / name)) files[name] = read_text_file(folder + "/" + name, 256 << 20);
  return files;
}

/// A template that was named, or comes from another folder, replaces that of the files.
Files with_template(Files files, const TokenizerSource& source) {
  const std::string home = tokenizer_home(source.tokenizer);
  const auto jinja = chat_template_of(source);
  if (!jinja || (source.chat_template.empty() && same_folder(home, source.settings))) return files;
  json config = read_json_object(home + "/tokenizer_config.json");
  config["chat_template"] = *jinja;
  files["tokenizer_config.json"] = config.dump(2) + "\n";
  files["chat_template.jinja"] = *jinja;
  files.erase("chat_template.json");
  return files;
}

Files files_of(const TokenizerSource& source) {
  if (source.tokenizer.empty() || !is_there(source.tokenizer)) return {};
  const std::string home = tokenizer_home(source.tokenizer);
  if (!Tokenizer::lies_at(source.tokenizer)) return copied_files(home);
  return Tokenizer::is_json(source.tokenizer) ? with_template(copied_files(home), source) : made_files(source);
}

}  // namespace

const std::vector<std::string>& tokenizer_file_names() {
  static const std::vector<std::string> names{"tokenizer.model",
                                              "tokenizer.json",
                                              "tokenizer_config.json",
                                              "added_tokens.json",
                                              "special_tokens_map.json",
                                              "chat_template.jinja",
                                              "chat_template.json",
                                              "vocab.json",
                                              "merges.txt"};
  return names;
}

TokenizerSource find_tokenizer(const std::string& named, const std::string& adapter, const std::string& model) {
  TokenizerSource source;
  const bool has_one = !adapter.empty() && Tokenizer::lies_at(adapter);
  source.tokenizer = !named.empty() ? named : has_one ? adapter : model;
  for (const std::string& folder : {tokenizer_home(named), adapter, model}) {
    if (folder.empty()) continue;
    if (source.settings.empty()) source.settings = folder;
    if (!is_there(folder + "/tokenizer_config.json") && !is_there(folder + "/chat_template.jinja")) continue;
    source.settings = folder;
    break;
  }
  return source;
}

std::string tokenizer_home(const std::string& tokenizer) {
  if (tokenizer.empty() || is_folder(tokenizer)) return tokenizer;
  const std::string parent = fs::path(tokenizer).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string tokenizer_config_of(const TokenizerSource& source) { return carried_config(source).dump(2) + "\n"; }

std::string encoding_rules_of(const TokenizerSource& source) {
  const json config = settings_of(source);
  json rules{{"added_tokens", added_tokens_of(tokenizer_home(source.tokenizer))}};
  for (const char* name : {"legacy", "add_prefix_space"}) rules[name] = config.value(name, json());
  for (const char* name : {"bos_token", "eos_token"})
    rules[name] = config.contains(name) ? json{content_of(config[name])} : json();  // null means none
  if (const json split = config.value("split_special_tokens", json()); split == true)
    rules["split_special_tokens"] = true;
  if (Tokenizer::is_json(source.tokenizer)) return rules.dump();  // tokenizer.json holds the rest
  const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
  rules["bos"] = tokenizer.bos().value_or(-1);
  rules["eos"] = tokenizer.eos().value_or(-1);
  return rules.dump();
}

std::optional<std::string> chat_template_of(const TokenizerSource& source) {
  if (source.settings.empty()) return std::nullopt;
  if (!source.chat_template.empty()) return ChatTemplate::load(source.settings, source.chat_template).jinja();
  return ChatTemplate::jinja_of(source.settings);
}

std::optional<std::string> tools_template_of(const TokenizerSource& source) {
  if (source.settings.empty() || !source.chat_template.empty()) return std::nullopt;
  const FolderTemplates folder = FolderTemplates::read(source.settings);
  const FolderTemplates::Source* for_tools = folder.chosen(true);
  return for_tools == folder.chosen(false) ? std::nullopt : std::optional(for_tools->jinja);
}

std::string chat_templates_mark(const TokenizerSource& source) {
  if (source.settings.empty()) return "none";
  json mark{{"default", chat_template_of(source).value_or("none")}, {"tools", tools_template_of(source).value_or("")}};
  for (const auto& [name, token] : FolderTemplates::read(source.settings).tokens) mark["tokens"][name] = token;
  return mark.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<std::int64_t> end_of_turn_of(const TokenizerSource& source) {
  if (source.tokenizer.empty() || !Tokenizer::lies_at(source.tokenizer)) return std::nullopt;
  try {
    if (!chat_template_of(source)) return std::nullopt;
    const std::string mark = ChatTemplate::load(source.settings, source.chat_template).end_of_turn();
    const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
    const auto id = tokenizer.id_of(mark);
    const TokenType type = id ? tokenizer.type(*id) : TokenType::normal;
    const bool one_token = type == TokenType::control || type == TokenType::user_defined;
    return one_token ? std::optional<std::int64_t>(*id) : std::nullopt;
  } catch (const UnreadableError&) {
    throw;
  } catch (const InputError&) {  // foreign templates and tokenizers are copied unread
    return std::nullopt;
  }
}

void check_tokenizer_files(const TokenizerSource& source) { files_of(source); }

void write_tokenizer_files(const std::string& folder, const TokenizerSource& source) {
  const Files files = files_of(source);
  if (files.empty()) return;
  for (const auto& [name, content] : files) write_text_file(folder + "/" + name, content);
  for (const std::string& name : tokenizer_file_names())
    if (!files.contains(name)) fs::remove(fs::path(folder) / name);
}

}  // namespace zero
