#include "models/formats/gguf/tokenizer/gguf_byte_pairs.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/gguf/tokenizer/pre_tokenizer_rules.h"

namespace zero {
namespace {

using nlohmann::json;

// llama_token_type
constexpr double normal = 1, control = 3, user_defined = 4, unused = 5;

class TokenizerJson {
 public:
  explicit TokenizerJson(const GgufFile& file)
      : file_(file), rule_(*pre_tokenizer_rule(file.word("tokenizer.ggml.pre").value_or(""))) {}

  json make() {
    read_tokens();
    return {
        {"version", "1.0"},
        {"truncation", nullptr},
        {"padding", nullptr},
        {"added_tokens", added_},
        {"normalizer", nullptr},
        {"pre_tokenizer", pre_tokenizer_of(rule_)},
        {"post_processor", edges()},
        {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
        {"model", model()}};
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw InputError(text(file_.path(), ": ", what)); }

  void read_tokens() {
    tokens_ = file_.words("tokenizer.ggml.tokens");
    const auto* types = file_.numbers("tokenizer.ggml.token_type");
    if (!tokens_ || !types || types->size() != tokens_->size())
      refuse("tokenizer.ggml.tokens and .token_type must be lists of one length");
    for (std::size_t id = 0; id < tokens_->size(); ++id) {
      const double type = (*types)[id];
      if (!(type >= 1 && type <= 6)) refuse(text("tokenizer.ggml.token_type holds ", type, "; types are 1 to 6"));
      if (type == unused) continue;
      const bool added = type == control || type == user_defined;
      if (added) add(id, type == control);
      if (!added && !vocabulary_.emplace((*tokens_)[id], id).second)
        refuse(text("tokenizer.ggml.tokens holds ", json((*tokens_)[id]).dump(), " twice"));
    }
  }

  void add(std::size_t id, bool special) {
    added_.push_back({{"id", id},
                      {"content", (*tokens_)[id]},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", special}});
  }

  json model() const {
    const auto* merges = file_.words("tokenizer.ggml.merges");
    if (!merges) refuse("tokenizer.ggml.merges is missing");
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", rule_.whole_words},
            {"vocab", vocabulary_},
            {"merges", *merges}};
  }

  /// BOS in front and EOS behind, where the file or its rule asks for them.
  json edges() const {
    json single = json::array(), known = json::object();
    const auto put = [&](const char* name, bool otherwise) {
      const auto id = file_.integer(text("tokenizer.ggml.", name, "_token_id"));
      if (!file_.flag(text("tokenizer.ggml.add_", name, "_token")).value_or(otherwise) || !id || *id < 0) return;
      if (std::size_t(*id) >= tokens_->size()) refuse(text("tokenizer.ggml.", name, "_token_id ", *id, " is no token"));
      const std::string& token = (*tokens_)[std::size_t(*id)];
      single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
      known[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
    };
    put("bos", rule_.bos);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    put("eos", false);
    if (known.empty()) return nullptr;
    json pair = single;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
    return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", known}};
  }

  const GgufFile& file_;
  const PreTokenizerRule& rule_;
  const std::vector<std::string>* tokens_ = nullptr;
  std::map<std::string, std::size_t> vocabulary_;
  json added_ = json::array();
};

}  // namespace

std::string why_no_byte_pairs(const GgufFile& file) {
  const std::string pre = file.word("tokenizer.ggml.pre").value_or("");
  if (pre_tokenizer_rule(pre)) return "";
  return text("the file's tokenizer cuts words by the rule ", json(pre).dump(),
              " (tokenizer.ggml.pre), and those known here are ", names_of_pre_tokenizer_rules());
}

std::string byte_pairs_json(const GgufFile& file) { return TokenizerJson(file).make().dump(); }

}  // namespace zero
