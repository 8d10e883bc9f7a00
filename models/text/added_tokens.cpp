#include "models/text/added_tokens.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr std::size_t max_tokens = 100'000;
constexpr std::int64_t max_id = 1 << 28;
constexpr const char* names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                 "pad_token", "cls_token", "mask_token"};

constexpr JsonLimits limits{.bytes = 256 << 20};  // a tokenizer.json of 256,000 pieces takes more than 30 MB

json read_object(const std::string& path) {
  if (!is_there(path)) return json::object();
  json file = parse_json(read_text_file(path, limits.bytes), path, limits);
  if (!file.is_object()) throw InputError(text(path, ": must be a JSON object"));
  return file;
}

bool flag(const json& token, const char* key, bool otherwise, const std::string& path) {
  const auto found = token.find(key);
  if (found == token.end()) return otherwise;
  if (!found->is_boolean())
    throw InputError(text(path, ": ", key, " of token ", token["content"].dump(), " must be true or false"));
  return found->get<bool>();
}

/// An object with content and flags, as in tokenizer_config.json and tokenizer.json.
AddedToken token_of(const json& token, std::int64_t id, const std::string& path) {
  if (!token.is_object() || !token.contains("content") || !token["content"].is_string() || token["content"] == "")
    throw InputError(text(path, ": the added token with id ", id, " must be an object that has content"));
  AddedToken added{id, token["content"].get<std::string>()};
  added.special = flag(token, "special", false, path);
  added.lstrip = flag(token, "lstrip", false, path);
  added.rstrip = flag(token, "rstrip", false, path);
  added.single_word = flag(token, "single_word", false, path);
  added.normalized = flag(token, "normalized", !added.special, path);
  return added;
}

std::int64_t id_of(const json& id, const std::string& path) {
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() > max_id)
    throw InputError(text(path, ": a token's id must be a small whole number"));
  return id.get<std::int64_t>();
}

using Tokens = std::map<std::int64_t, AddedToken>;

Tokens tokens_of_decoder(const json& decoder, const std::string& path) {
  if (!decoder.is_object()) throw InputError(text(path, ": added_tokens_decoder must be an object"));
  Tokens tokens;
  for (const auto& [id, token] : decoder.items()) {
    const bool digits = !id.empty() && id.size() < 10 &&
                        std::all_of(id.begin(), id.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (!digits) throw InputError(text(path, ": added_tokens_decoder: \"", id.substr(0, 40), "\" must be an id"));
    tokens[std::stoll(id)] = token_of(token, std::stoll(id), path);
  }
  return tokens;
}

/// The tokens called bos_token and so on, and those of `lists`, or of objects that name them; strings, or objects with
/// flags.
void add_named(const json& config, const std::vector<const char*>& lists, const std::string& path,
               std::vector<AddedToken>& named) {
  const auto add = [&](const json& token) {
    AddedToken one = token.is_object() ? token_of(token, -1, path)
                                       : AddedToken{-1, token.is_string() ? token.get<std::string>() : ""};
    one.special = true;
    one.normalized = false;
    if (!one.content.empty()) named.push_back(std::move(one));
  };
  const auto is_token = [](const json& value) {
    return value.is_string() || (value.is_object() && value.contains("content"));
  };
  for (const char* name : names)
    if (config.contains(name)) add(config[name]);
  for (const auto& [name, value] : config.items())  // names of a model's own: image_token
    if (name.ends_with("_token") && is_token(value) && std::ranges::find(names, name) == std::end(names)) add(value);
  for (const char* list : lists)
    if (config.contains(list) && (config[list].is_array() || config[list].is_object()))
      for (const json& token : config[list]) add(token);
}

/// Reads the older files, if tokenizer_config.json does not list the tokens.
void read_older(const std::filesystem::path& folder, Tokens& tokens, std::vector<AddedToken>& named) {
  const std::string map_path = folder / "special_tokens_map.json", path = folder / "added_tokens.json",
                    list_path = folder / "tokenizer.json";
  add_named(read_object(map_path), {"extra_special_tokens"}, map_path,
            named);  // its other list is passed over there, too
  const json older = read_object(path);
  for (const auto& [content, id] : older.items()) {
    if (content.empty()) throw InputError(text(path, ": has an empty token"));
    const bool special = std::any_of(named.begin(), named.end(),
                                     [&content = content](const AddedToken& one) { return one.content == content; });
    tokens[id_of(id, path)] = {.id = id_of(id, path), .content = content, .special = special, .normalized = !special};
  }
  const json list = read_object(list_path).value("added_tokens", json::array());
  if (!list.is_array()) throw InputError(text(list_path, ": added_tokens must be a list"));
  for (const json& token : list) {
    const std::int64_t id = id_of(token.is_object() ? token.value("id", json()) : json(), list_path);
    tokens[id] = token_of(token, id, list_path);
  }
}

/// A named token. The last file that names it wins, as in transformers.
std::optional<std::string> named_token(const json& config, const json& map, const char* name) {
  const json* token = map.contains(name) ? &map[name] : config.contains(name) ? &config[name] : nullptr;
  if (!token) return std::nullopt;
  const json content = token->is_object() ? token->value("content", json()) : *token;
  return content.is_string() ? content.get<std::string>() : "";
}

}  // namespace

TokenizerFolder read_tokenizer_folder(const std::filesystem::path& folder) {
  const std::string config_path = folder / "tokenizer_config.json";
  const json config = read_object(config_path);
  const bool listed = config.contains("added_tokens_decoder");
  TokenizerFolder told;
  Tokens tokens;
  const json extra = config.value("extra_special_tokens", json());
  const bool older = extra.is_null() || extra.empty();  // its name before transformers 5 counts
  add_named(config, {older ? "additional_special_tokens" : "extra_special_tokens"}, config_path, told.named);
  if (listed)
    tokens = tokens_of_decoder(config["added_tokens_decoder"], config_path);
  else
    read_older(folder, tokens, told.named);
  const json map = listed ? json::object() : read_object(folder / "special_tokens_map.json");
  told.bos = named_token(config, map, "bos_token");
  told.eos = named_token(config, map, "eos_token");
  std::set<std::string> attributes;
  for (const char* name : names) attributes.insert(named_token(config, map, name).value_or(""));
  if (tokens.size() > max_tokens) throw InputError(text(folder.string(), ": more than ", max_tokens, " added tokens"));
  for (auto& [id, token] : tokens) {
    token.special = token.special || attributes.contains(token.content);
    told.tokens.push_back(std::move(token));
  }
  return told;
}

}  // namespace zero
