#include "models/formats/gguf/tokenizer/tokenizer_keys.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/formats/gguf/tokenizer/pipeline_form.h"
#include "models/text/pipeline/text_pipeline.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

using nlohmann::json;

std::optional<std::int32_t> id_of(const json& config, const char* key, const Tokenizer& tokenizer) {
  const json token = config.value(key, json());
  const json content = token.is_object() ? token.value("content", json()) : token;
  return content.is_string() ? tokenizer.id_of(content.get<std::string>()) : std::nullopt;
}

bool is_phi3(std::string name) {
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

}  // namespace

GgufTokenizerKeys::GgufTokenizerKeys(const TokenizerSource& source, const ModelConfig& config)
    : path_(source.tokenizer) {
  if (source.tokenizer.empty()) return;
  Tokenizer::is_json(source.tokenizer) ? take_pipeline(source, config) : take_sentencepiece(source, config);
  chat_template_ = chat_template_of(source);
  if (!chat_template_) return;
  if (const auto id = end_of_turn_of(source))
    ids_["eot"] = *id;
  else
    log_info(
        "note: the chat template is none of those known here, or its end of turn is no token: it is written as it is");
}

void GgufTokenizerKeys::take_sentencepiece(const TokenizerSource& source, const ModelConfig& config) {
  const Tokenizer tokenizer = Tokenizer::load_sentencepiece(source.tokenizer);
  const std::string settings_text = tokenizer_config_of(source);
  const json settings = json::parse(settings_text);
  vocabulary_ = gguf_vocabulary(source.tokenizer, config.vocab_size);
  model_ = "llama";
  pre_ = "default";
  with_scores_ = true;
  added_ = tokenizer.added_tokens();
  add_bos_ = settings.value("add_bos_token", json()) != false;
  add_eos_ = settings.value("add_eos_token", json()) == true;
  space_in_front_ = tokenizer.add_dummy_prefix() && settings.value("add_prefix_space", json()) != false;
  take_ids(tokenizer, settings_text, config);
}

void GgufTokenizerKeys::take_pipeline(const TokenizerSource& source, const ModelConfig& config) {
  const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
  PipelineForm form = pipeline_form(tokenizer.model_path());
  vocabulary_ = gguf_vocabulary(tokenizer, form, config.vocab_size);
  model_ = form.model;
  pre_ = form.pre;
  with_scores_ = form.model == "llama";
  merges_ = std::move(form.merges);
  added_ = tokenizer.added_tokens();
  if (with_scores_) space_in_front_ = form.space_in_front;
  const std::string home = tokenizer_home(source.tokenizer) + "/tokenizer_config.json";
  const json settings = read_json_object(home);
  if (json_value<bool>(settings, "split_special_tokens", false, home))
    throw InputError(
        text(home, ": split_special_tokens is true, and llama.cpp takes special tokens in a text for tokens"));
  take_ids(tokenizer, settings.dump(), config);
  take_edges(tokenizer);
  for (const std::string& note : form.notes) log_info("note: ", note, ": such texts get other ids there");
  note_flags();
}

void GgufTokenizerKeys::take_ids(const Tokenizer& tokenizer, const std::string& settings_text,
                                 const ModelConfig& config) {
  const json settings = json::parse(settings_text);
  const auto take = [&](const char* name, std::optional<std::int64_t> id) {
    if (id && *id < config.vocab_size) ids_[name] = *id;
  };
  take("bos", config.bos_token_id ? config.bos_token_id : std::optional<std::int64_t>(tokenizer.bos()));
  take("eos",
       config.eos_token_ids.empty() ? std::optional<std::int64_t>(tokenizer.eos()) : config.eos_token_ids.front());
  const auto unknown = tokenizer.unk() ? tokenizer.unk() : id_of(settings, "unk_token", tokenizer);
  take("unknown", unknown);
  take("padding", id_of(settings, "pad_token", tokenizer));
}

/// Tokens around a text: llama.cpp supports BOS, EOS or nothing.
void GgufTokenizerKeys::take_edges(const Tokenizer& tokenizer) {
  const std::vector<std::int32_t>&opening = tokenizer.pipeline()->opening(), &closing = tokenizer.pipeline()->closing();
  if (opening.size() > 1 || closing.size() > 1)
    throw InputError(text(path_, ": its post_processor puts ", opening.size(), " tokens in front of a text and ",
                          closing.size(), " behind it; llama.cpp puts BOS and EOS at most"));
  if (!opening.empty()) ids_["bos"] = opening.front();
  if (!closing.empty()) ids_["eos"] = closing.front();
  add_bos_ = !opening.empty();
  add_eos_ = !closing.empty();
  if (!ids_.contains("eos"))
    throw InputError(text(path_,
                          ": neither the model's config.json nor the tokenizer names a token that ends a text, and "
                          "llama.cpp takes one of its own then: give config.json an eos_token_id"));
}

bool GgufTokenizerKeys::has_phi3_tokens() const {
  const auto has = [&](const char* token) {
    return std::find(vocabulary_.tokens.begin(), vocabulary_.tokens.end(), token) != vocabulary_.tokens.end();
  };
  if (!has("</s>") || !has("<unk>") || !has("<s>") || !has("<|endoftext|>")) return false;
  return std::all_of(added_.begin(), added_.end(), [](const AddedToken& token) {
    const bool plain = token.content == "<unk>" || token.content == "<s>" || token.content == "<|endoftext|>";
    return token.rstrip != plain;
  });
}

std::string GgufTokenizerKeys::model_name(const std::string& wanted) const {
  if (model_ == "no_vocab") return wanted;
  const bool strips = std::any_of(added_.begin(), added_.end(), [](const AddedToken& token) { return token.rstrip; });
  if (strips && has_phi3_tokens()) return is_phi3(wanted) ? wanted : wanted + (wanted.empty() ? "phi-3" : "-phi-3");
  if (!is_phi3(wanted)) return wanted;
  log_info("note: general.name \"", wanted,
           "\" is left out: llama.cpp takes a file of this name for one with the special "
           "tokens of Phi-3, which take the white space behind them");
  return "";
}

/// A note about the first token with flags that llama.cpp lacks.
void GgufTokenizerKeys::note_flags() const {
  const bool phi3 = has_phi3_tokens();
  for (const AddedToken& token : added_) {
    const char* flag = token.lstrip                                          ? "lstrip"
                       : token.rstrip && !phi3                               ? "rstrip"
                       : token.single_word                                   ? "single_word"
                       : token.normalized && space_in_front_.value_or(false) ? "normalized"
                                                                             : nullptr;
    if (!flag) continue;
    log_info("note: added token ", json(token.content).dump(), " has ", flag,
             ", which llama.cpp does not know: texts where that matters get other ids there");
    return;
  }
}

void GgufTokenizerKeys::add_to(GgufMetadata& metadata) const {
  metadata.add("tokenizer.ggml.model", model_);
  if (model_ == "no_vocab") return;
  metadata.add("tokenizer.ggml.pre", pre_);
  metadata.add("tokenizer.ggml.tokens", vocabulary_.tokens);
  if (with_scores_) metadata.add("tokenizer.ggml.scores", vocabulary_.scores);
  metadata.add("tokenizer.ggml.token_type", vocabulary_.types);
  if (!merges_.empty() || !with_scores_) metadata.add("tokenizer.ggml.merges", merges_);
  for (const auto& [name, id] : ids_) metadata.add_uint32(text("tokenizer.ggml.", name, "_token_id"), id);
  metadata.add_bool("tokenizer.ggml.add_bos_token", add_bos_);
  metadata.add_bool("tokenizer.ggml.add_eos_token", add_eos_);
  if (space_in_front_) metadata.add_bool("tokenizer.ggml.add_space_prefix", *space_in_front_);
  if (chat_template_) metadata.add("tokenizer.chat_template", *chat_template_);
}

}  // namespace zero
