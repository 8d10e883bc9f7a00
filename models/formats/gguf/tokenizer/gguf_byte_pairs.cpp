#include "models/formats/gguf/tokenizer/gguf_byte_pairs.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"
#include "models/formats/gguf/tokenizer/gguf_tokens.h"
#include "models/formats/gguf/tokenizer/pre_tokenizer_rules.h"

namespace zero {
namespace {

using nlohmann::json;

// llama_token_type
constexpr double control = 3, user_defined = 4, unused = 5;

class TokenizerJson {
 public:
  explicit TokenizerJson(const GgufFile& file)
      : file_(file),
        rule_(*pre_tokenizer_rule(file.word("tokenizer.ggml.pre").value_or(""))),
        tokens_(gguf_tokens(file)) {}

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
    for (std::size_t id = 0; id < tokens_.texts.size(); ++id) {
      const double type = tokens_.types[id];
      const std::string& token = tokens_.texts[id];
      if (type == unused) continue;
      // An added token has the id of its text in the vocabulary. Others are counted from the vocabulary's end.
      if (!vocabulary_.emplace(token, id).second)
        refuse(text("tokenizer.ggml.tokens holds ", json_quoted(token), " twice"));
      if (type == control || type == user_defined) add(id, type == control);
    }
  }

  void add(std::size_t id, bool special) {
    added_.push_back({{"id", id},
                      {"content", tokens_.texts[id]},
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

  /// Adds BOS before and EOS after a text if the file or its rule says so.
  json edges() const {
    json single = json::array(), known = json::object();
    const auto put = [&](const char* name, bool otherwise) {
      const auto id = file_.integer(text("tokenizer.ggml.", name, "_token_id"));
      if (!file_.flag(text("tokenizer.ggml.add_", name, "_token")).value_or(otherwise) || !id || *id < 0) return;
      if (std::size_t(*id) >= tokens_.texts.size())
        refuse(text("tokenizer.ggml.", name, "_token_id ", *id, " is no token"));
      const std::string& token = tokens_.texts[std::size_t(*id)];
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
  GgufTokens tokens_;
  std::map<std::string, std::size_t> vocabulary_;
  json added_ = json::array();
};

}  // namespace

std::string why_no_byte_pairs(const GgufFile& file) {
  const std::string pre = file.word("tokenizer.ggml.pre").value_or("");
  if (pre_tokenizer_rule(pre)) return "";
  return text("the file's tokenizer cuts words by the rule ", json_quoted(pre),
              " (tokenizer.ggml.pre), and those known here are ", names_of_pre_tokenizer_rules());
}

std::string byte_pairs_json(const GgufFile& file) { return TokenizerJson(file).make().dump(); }

}  // namespace zero
