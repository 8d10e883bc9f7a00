#include "models/gguf_vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "comm/error.h"
#include "comm/log.h"
#include "models/chat_template.h"
#include "models/json_text.h"
#include "models/tokenizer.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int32_t control = 3, user_defined = 4, unused = 5;
constexpr float score_of_added = -1000, score_of_padding = -10000;  // as convert_hf_to_gguf.py

std::int32_t number_of(TokenType type) {
  switch (type) {
    case TokenType::normal: return 1;
    case TokenType::unknown: return 2;
    case TokenType::control: return control;
    case TokenType::user_defined: return user_defined;
    case TokenType::unused: return unused;
    case TokenType::byte: return 6;
  }
  throw InternalError("unknown type of token");
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

json read_object(const fs::path& path) {
  if (!fs::exists(path)) return json::object();
  json file = parse_json(read_text_file(path), path);
  if (!file.is_object()) throw InputError(text(path.string(), ": must be a JSON object"));
  return file;
}

/// By the added tokens' ids, whether the folder calls them special. Their form was checked by Tokenizer::load.
std::map<std::int64_t, bool> added_tokens(const fs::path& folder) {
  std::map<std::int64_t, bool> special;
  const json config = read_object(folder / "tokenizer_config.json");
  const json decoder = config.value("added_tokens_decoder", json::object());
  for (const auto& [id, token] : decoder.items()) special[std::stoll(id)] = token.value("special", json()) == true;
  if (!special.empty()) return special;
  const json older = read_object(folder / "added_tokens.json");
  for (const auto& [content, id] : older.items()) special[id.get<std::int64_t>()] = false;
  return special;
}

bool looks_special(const std::string& token) { return token.starts_with("<|") && token.ends_with("|>"); }

std::string with_spaces(std::string token) {
  constexpr std::string_view mark = "\u2581";
  for (std::size_t at = token.find(mark); at != std::string::npos; at = token.find(mark, at + 1)) token.replace(at, mark.size(), " ");
  return token;
}

std::optional<std::int32_t> id_of(const json& config, const char* key, const Tokenizer& tokenizer) {
  const json token = config.value(key, json());
  const json content = token.is_object() ? token.value("content", json()) : token;
  return content.is_string() ? tokenizer.id_of(content.get<std::string>()) : std::nullopt;
}

void add_ids(GgufMetadata& metadata, const Tokenizer& tokenizer, const json& config, const ModelConfig& model) {
  const auto add = [&](const char* name, std::optional<std::int64_t> id) {
    if (id && *id < model.vocab_size) metadata.add_uint32(text("tokenizer.ggml.", name, "_token_id"), *id);
  };
  add("bos", model.bos_token_id ? model.bos_token_id : std::optional<std::int64_t>(tokenizer.bos()));
  add("eos", model.eos_token_ids.empty() ? std::optional<std::int64_t>(tokenizer.eos()) : model.eos_token_ids.front());
  add("unknown", tokenizer.unk());
  add("padding", id_of(config, "pad_token", tokenizer));
}

/// The template's own words, and the token that ends a turn where one can be told.
void add_template(GgufMetadata& metadata, const fs::path& folder, const Tokenizer& tokenizer) {
  const auto jinja = ChatTemplate::jinja_of(folder);
  if (!jinja) return;
  metadata.add("tokenizer.chat_template", *jinja);
  try {
    if (const auto id = tokenizer.id_of(ChatTemplate::load(folder).end_of_turn())) metadata.add_uint32("tokenizer.ggml.eot_token_id", *id);
  } catch (const InputError& unknown) {
    log_info("note: ", unknown.what(), "; it is written as it is");
  }
}

}  // namespace

GgufVocabulary gguf_vocabulary(const std::string& path, std::int64_t vocab_size) {
  const Tokenizer tokenizer = Tokenizer::load(path);
  const auto added = added_tokens(folder_of(path));
  GgufVocabulary vocabulary;
  for (std::int64_t id = 0; id < std::min(vocab_size, tokenizer.vocab_size()); ++id) {
    const auto extra = added.find(id);
    std::string token = tokenizer.piece(id);
    std::int32_t type = number_of(tokenizer.type(id));
    if (extra != added.end() && type == control && !extra->second && !looks_special(token)) {
      type = user_defined;
      token = with_spaces(std::move(token));
    }
    vocabulary.tokens.push_back(std::move(token));
    vocabulary.scores.push_back(extra != added.end() ? score_of_added : tokenizer.score(id));
    vocabulary.types.push_back(type);
  }
  for (std::int64_t id = vocab_size; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.type(id) != TokenType::control)
      throw InputError(text(path, ": the tokenizer has ", tokenizer.vocab_size(), " tokens, the model ", vocab_size, ": they do not belong together"));
    log_warning(path, ": token ", id, " (", tokenizer.piece(id), ") is left out, the model has ", vocab_size, " tokens");
  }
  for (std::int64_t id = tokenizer.vocab_size(); id < vocab_size; ++id) {
    vocabulary.tokens.push_back(text("[PAD", id, "]"));
    vocabulary.scores.push_back(score_of_padding);
    vocabulary.types.push_back(unused);
  }
  return vocabulary;
}

void add_tokenizer(GgufMetadata& metadata, const std::string& path, const ModelConfig& config) {
  if (path.empty()) return metadata.add("tokenizer.ggml.model", "no_vocab");
  const GgufVocabulary vocabulary = gguf_vocabulary(path, config.vocab_size);
  const Tokenizer tokenizer = Tokenizer::load(path);
  const fs::path folder = folder_of(path);
  const json settings = read_object(folder / "tokenizer_config.json");
  metadata.add("tokenizer.ggml.model", "llama");
  metadata.add("tokenizer.ggml.pre", "default");
  metadata.add("tokenizer.ggml.tokens", vocabulary.tokens);
  metadata.add("tokenizer.ggml.scores", vocabulary.scores);
  metadata.add("tokenizer.ggml.token_type", vocabulary.types);
  add_ids(metadata, tokenizer, settings, config);
  metadata.add_bool("tokenizer.ggml.add_bos_token", settings.value("add_bos_token", json()) != false);
  metadata.add_bool("tokenizer.ggml.add_eos_token", settings.value("add_eos_token", json()) == true);
  metadata.add_bool("tokenizer.ggml.add_space_prefix", tokenizer.add_dummy_prefix() && settings.value("add_prefix_space", json()) != false);
  add_template(metadata, folder, tokenizer);
}

}  // namespace zero
