#include "models/formats/gguf/tokenizer/gguf_vocabulary.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/formats/gguf/tokenizer/pipeline_form.h"
#include "models/formats/tokenizer_files.h"
#include "models/text/pipeline/model/token_model.h"
#include "models/text/pipeline/text_pipeline.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr std::int32_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;
constexpr float score_of_added = -1000, score_of_padding = -10000;  // from convert_hf_to_gguf.py

std::int32_t number_of(TokenType type) {
  switch (type) {
    case TokenType::normal:
      return normal;
    case TokenType::unknown:
      return unknown;
    case TokenType::control:
      return control;
    case TokenType::user_defined:
      return user_defined;
    case TokenType::unused:
      return unused;
    case TokenType::byte:
      return byte;
  }
  throw InternalError("unknown type of token");
}

/// By id of an added token: true if the folder calls it special. Tokenizer::load has checked their form.
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

void add(GgufVocabulary& vocabulary, std::string token, float score, std::int32_t type) {
  vocabulary.tokens.push_back(std::move(token));
  vocabulary.scores.push_back(score);
  vocabulary.types.push_back(type);
}

void add_padding(GgufVocabulary& vocabulary, std::int64_t id) {
  add(vocabulary, text("[PAD", id, "]"), score_of_padding, unused);
}

/// Removes tokens that have no row in the model if text can be encoded without them.
template <class CanGo>
void leave_out(const std::string& path, const Tokenizer& tokenizer, std::int64_t vocab_size, const CanGo& can_go) {
  for (std::int64_t id = vocab_size; id < tokenizer.vocab_size(); ++id) {
    if (!can_go(id))
      throw InputError(text(path, ": the tokenizer has ", tokenizer.vocab_size(), " tokens, the model ", vocab_size,
                            ": they do not belong together"));
    log_warning(path, ": token ", id, " (", tokenizer.piece(id), ") is left out, the model has ", vocab_size,
                " tokens");
  }
}

const std::map<std::string, int>& byte_pieces() {
  static const std::map<std::string, int> pieces = [] {
    std::map<std::string, int> all;
    for (int value = 0; value < 256; ++value) all[byte_piece(static_cast<unsigned char>(value))] = value;
    return all;
  }();
  return pieces;
}

/// Added tokens by id.
std::map<std::int64_t, AddedToken> by_id(const std::vector<AddedToken>& tokens) {
  std::map<std::int64_t, AddedToken> all;
  for (const AddedToken& token : tokens) all[token.id] = token;
  return all;
}

}  // namespace

GgufVocabulary gguf_vocabulary(const std::string& path, std::int64_t vocab_size) {
  const Tokenizer tokenizer = Tokenizer::load_sentencepiece(path);
  tokenizer.require_plain_merges("GGUF files");  // llama.cpp merges by score
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
    add(vocabulary, std::move(token), extra != added.end() ? score_of_added : tokenizer.score(id), type);
  }
  leave_out(path, tokenizer, vocab_size,
            [&](std::int64_t id) { return tokenizer.type(id) == TokenType::control || added.contains(id); });
  for (std::int64_t id = tokenizer.vocab_size(); id < vocab_size; ++id) add_padding(vocabulary, id);
  return vocabulary;
}

GgufVocabulary gguf_vocabulary(const Tokenizer& tokenizer, const PipelineForm& form, std::int64_t vocab_size) {
  const auto pipeline = tokenizer.pipeline();
  const std::map<std::int64_t, AddedToken> added = by_id(tokenizer.added_tokens());
  GgufVocabulary vocabulary;
  for (std::int64_t id = 0; id < vocab_size; ++id) {
    const std::string* piece = id < tokenizer.vocab_size() ? pipeline->written(static_cast<std::int32_t>(id)) : nullptr;
    if (!piece) {
      add_padding(vocabulary, id);
      continue;
    }
    if (const auto extra = added.find(id); extra != added.end()) {
      const bool special = extra->second.special || looks_special(*piece);
      // searched in the normalised text, where spaces are marks
      const bool marked = form.model == "llama" && !special && extra->second.normalized;
      const std::int32_t type = !form.unknown.empty() && *piece == form.unknown ? unknown
                                : special                                       ? control
                                                                                : user_defined;
      add(vocabulary, marked ? with_spaces(*piece) : *piece, score_of_added, type);
      continue;
    }
    const auto score = form.scores.find(*piece);
    const bool is_byte = form.model == "llama" && byte_pieces().contains(*piece);
    const std::int32_t type = is_byte ? byte : !form.unknown.empty() && *piece == form.unknown ? unknown : normal;
    add(vocabulary, *piece, score == form.scores.end() ? 0.0F : score->second, type);
  }
  leave_out(tokenizer.model_path(), tokenizer, vocab_size,
            [&](std::int64_t id) { return added.contains(id) || !pipeline->written(static_cast<std::int32_t>(id)); });
  return vocabulary;
}

}  // namespace zero
