#include "models/formats/gguf_vocabulary.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr std::int32_t control = 3, user_defined = 4, unused = 5;
constexpr float score_of_added = -1000, score_of_padding = -10000;  // as convert_hf_to_gguf.py

std::int32_t number_of(TokenType type) {
  switch (type) {
    case TokenType::normal:
      return 1;
    case TokenType::unknown:
      return 2;
    case TokenType::control:
      return control;
    case TokenType::user_defined:
      return user_defined;
    case TokenType::unused:
      return unused;
    case TokenType::byte:
      return 6;
  }
  throw InternalError("unknown type of token");
}

/// By the added tokens' ids, whether the folder calls them special. Their form was checked by Tokenizer::load.
std::map<std::int64_t, bool> added_tokens(const json& config) {
  std::map<std::int64_t, bool> special;
  const json decoder = config.value("added_tokens_decoder", json::object());
  for (const auto& [id, token] : decoder.items()) special[std::stoll(id)] = token.value("special", json()) == true;
  return special;
}

bool looks_special(const std::string& token) { return token.starts_with("<|") && token.ends_with("|>"); }

std::string with_spaces(std::string token) {
  constexpr std::string_view mark = "\u2581";
  for (std::size_t at = token.find(mark); at != std::string::npos; at = token.find(mark, at + 1))
    token.replace(at, mark.size(), " ");
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
void add_template(GgufMetadata& metadata, const TokenizerSource& source) {
  const auto jinja = chat_template_of(source);
  if (!jinja) return;
  metadata.add("tokenizer.chat_template", *jinja);
  if (const auto id = end_of_turn_of(source))
    metadata.add_uint32("tokenizer.ggml.eot_token_id", *id);
  else
    log_info(
        "note: the chat template is none of those known here, or its end of turn is no token: it is written as it is");
}

}  // namespace

GgufVocabulary gguf_vocabulary(const std::string& path, std::int64_t vocab_size) {
  const Tokenizer tokenizer = Tokenizer::load_sentencepiece(path);
  tokenizer.require_plain_merges("prompts of a GGUF file");  // llama.cpp merges by scores
  const auto added = added_tokens(json::parse(tokenizer_config_of({path, tokenizer_home(path)})));
  GgufVocabulary vocabulary;
  for (std::int64_t id = 0; id < std::min(vocab_size, tokenizer.vocab_size()); ++id) {
    const auto extra = added.find(id);
    std::string token = tokenizer.piece(id);
    std::int32_t type = number_of(tokenizer.type(id));
    if (extra != added.end() && (type == control || type == user_defined)) {
      type = extra->second || looks_special(token) ? control : user_defined;
      if (type == user_defined) token = with_spaces(std::move(token));
    }
    vocabulary.tokens.push_back(std::move(token));
    vocabulary.scores.push_back(extra != added.end() ? score_of_added : tokenizer.score(id));
    vocabulary.types.push_back(type);
  }
  for (std::int64_t id = vocab_size; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.type(id) != TokenType::control && !added.contains(id))
      throw InputError(text(path, ": the tokenizer has ", tokenizer.vocab_size(), " tokens, the model ", vocab_size,
                            ": they do not belong together"));
    log_warning(path, ": token ", id, " (", tokenizer.piece(id), ") is left out, the model has ", vocab_size,
                " tokens");
  }
  for (std::int64_t id = tokenizer.vocab_size(); id < vocab_size; ++id) {
    vocabulary.tokens.push_back(text("[PAD", id, "]"));
    vocabulary.scores.push_back(score_of_padding);
    vocabulary.types.push_back(unused);
  }
  return vocabulary;
}

void add_tokenizer(GgufMetadata& metadata, const TokenizerSource& source, const ModelConfig& config) {
  if (source.tokenizer.empty()) return metadata.add("tokenizer.ggml.model", "no_vocab");
  const GgufVocabulary vocabulary = gguf_vocabulary(source.tokenizer, config.vocab_size);
  const Tokenizer tokenizer = Tokenizer::load_sentencepiece(source.tokenizer);
  const json settings = json::parse(tokenizer_config_of(source));
  metadata.add("tokenizer.ggml.model", "llama");
  metadata.add("tokenizer.ggml.pre", "default");
  metadata.add("tokenizer.ggml.tokens", vocabulary.tokens);
  metadata.add("tokenizer.ggml.scores", vocabulary.scores);
  metadata.add("tokenizer.ggml.token_type", vocabulary.types);
  add_ids(metadata, tokenizer, settings, config);
  metadata.add_bool("tokenizer.ggml.add_bos_token", settings.value("add_bos_token", json()) != false);
  metadata.add_bool("tokenizer.ggml.add_eos_token", settings.value("add_eos_token", json()) == true);
  metadata.add_bool("tokenizer.ggml.add_space_prefix",
                    tokenizer.add_dummy_prefix() && settings.value("add_prefix_space", json()) != false);
  add_template(metadata, source);
}

}  // namespace zero
