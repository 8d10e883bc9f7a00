#include "models/formats/gguf/tokenizer/pipeline_form.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"
#include "base/utf8.h"
#include "models/formats/gguf/tokenizer/pre_tokenizer_rules.h"
#include "models/text/pipeline/component.h"
#include "models/text/pipeline/metaspace.h"
#include "models/text/pipeline/model/merge_list.h"
#include "models/text/pipeline/model/token_model.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr const char* mark = "\u2581";  // a space, in pieces of SentencePiece

class FormReader {
 public:
  explicit FormReader(const std::string& path)
      : path_(path), file_(parse_json(read_text_file(path, 256 << 20), path, {.bytes = 256 << 20})) {}

  PipelineForm read() {
    const json& model = file_.at("model");
    if (model.value("type", json("BPE")) != "BPE")
      refuse(text("model.type ", model.value("type", json()).dump()), "BPE alone is written");
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const json value = model.value(affix, json()); !value.is_null() && value != "")
        refuse(text("model.", affix, " ", value.dump()), "llama.cpp has none");
    Component component(model, path_, "model");
    merges_ = read_merges(component);
    const std::vector<std::string> steps = pre_tokenizer_steps(part("pre_tokenizer"));
    model.value("byte_fallback", json(false)) == true ? by_scores() : of_bytes(steps);
    return form_;
  }

 private:
  json part(const char* key) const { return file_.value(key, json()); }
  bool whole_words() const { return file_.at("model").value("ignore_merges", json(false)) == true; }

  [[noreturn]] void refuse(const std::string& what, const std::string& why) const {
    throw InputError(text(path_, ": ", what.substr(0, 300), ": ", why,
                          ", so that llama.cpp would find other ids; name another tokenizer by --tokenizer (a "
                          "tokenizer.model is written by its scores), or export a Hugging Face directory"));
  }

  void of_bytes(const std::vector<std::string>& steps) {
    form_.model = "gpt2";
    for (const PreTokenizerRule& rule : pre_tokenizer_rules())
      if (rule.steps == steps && rule.whole_words == whole_words()) form_.pre = rule.name;
    if (form_.pre.empty())
      refuse(
          text("pre_tokenizer ", whole_words() ? "with" : "without", " ignore_merges: ", part("pre_tokenizer").dump()),
          text("is none of llama.cpp's that are known here (", names_of_pre_tokenizer_rules(), ")"));
    const json normalizer = part("normalizer");
    if (!normalizer.is_null() && normalizer != json{{"type", "NFC"}})
      refuse(text("normalizer ", normalizer.dump()), "llama.cpp normalises nothing");
    if (!normalizer.is_null())
      form_.notes.emplace_back(
          "llama.cpp does not bring texts into Unicode's normal form C, as the tokenizer.json does");
    if (form_.pre == "tekken" || form_.pre == "gpt-4o")
      form_.notes.emplace_back("llama.cpp tells capitals from small letters in ASCII alone where it cuts words");
    for (const auto& [left, right] : merges_) form_.merges.push_back(left + " " + right);
  }

  /// SentencePiece: marks for spaces, merges of characters, bytes for unknown ones.
  void by_scores() {
    form_.model = "llama";
    form_.pre = "default";
    if (const json unknown = file_.at("model").value("unk_token", json()); unknown.is_string()) form_.unknown = unknown;
    if (whole_words()) refuse("model.ignore_merges", "llama.cpp merges all words alike");
    spaces();
    vocabulary();
    scores();
  }

  static bool is_replacement(const json& step) {
    return step.value("type", json()) == "Replace" && step.value("content", json()) == mark &&
           step.value("pattern", json()) == json{{"String", " "}};
  }

  void spaces() {
    json normalizer = part("normalizer"), pre = part("pre_tokenizer");
    json steps = json::array();
    if (normalizer.is_object() && normalizer.value("type", json()) == "Sequence")
      steps = normalizer.value("normalizers", json::array());
    else if (!normalizer.is_null())
      steps.push_back(normalizer);
    if (!steps.empty() && steps.front() == json{{"type", "Prepend"}, {"prepend", mark}}) {
      form_.space_in_front = true;
      steps.erase(steps.begin());
    }
    const bool replaced = steps.size() == 1 && is_replacement(steps.front());
    if (!steps.empty() && !replaced) refuse(text("normalizer ", normalizer.dump()), "llama.cpp only marks spaces");
    if (form_.space_in_front && !replaced) refuse(text("normalizer ", normalizer.dump()), "llama.cpp marks spaces too");
    if (pre.is_null()) {
      if (replaced) return;
      refuse("no pre_tokenizer, and no normalizer that marks spaces", "llama.cpp marks them");
    }
    // it no longer finds a space
    if (replaced && pre.value("type", json()) == "Split" && pre.value("pattern", json()) == json{{"String", " "}})
      return;
    if (replaced || pre.value("type", json()) != "Metaspace")
      refuse(text("pre_tokenizer ", pre.dump()), "llama.cpp only marks spaces");
    metaspace(pre);
  }

  void metaspace(const json& pre) {
    Component component(pre, path_, "pre_tokenizer");
    component.type();
    const Metaspace form = read_metaspace(component);
    if (form.replacement != mark) refuse(text("pre_tokenizer ", pre.dump()), "llama.cpp's mark is U+2581");
    form_.space_in_front = form.scheme != PrependScheme::never;
    cuts_words_ = form.split;
    if (form_.space_in_front)
      form_.notes.emplace_back("llama.cpp puts a space in front of a text that begins with one, too");
    if (form.scheme == PrependScheme::first)
      form_.notes.emplace_back("llama.cpp puts a space behind each special token, not at the very beginning alone");
  }

  void vocabulary() {
    for (const auto& [piece, id] : file_.at("model").at("vocab").items()) pieces_.insert(piece);
    for (int byte = 0; byte < 256; ++byte)
      if (!pieces_.contains(byte_piece(static_cast<unsigned char>(byte))))
        refuse(text("model.vocab has no ", byte_piece(static_cast<unsigned char>(byte))),
               "llama.cpp writes unknown characters by their bytes");
  }

  /// llama.cpp scores a merge by its result, whatever the pair. So every way to form a piece must be a merge, and the
  /// merges of one piece must be adjacent.
  void scores() {
    std::size_t ways = 0;
    for (const auto& [left, right] : merges_) {
      const std::string piece = left + right;
      if (cuts_words_ && piece.find(mark, 1) != std::string::npos)
        refuse(text("piece ", json_quoted(piece)), "its tokenizer cuts words at spaces, and llama.cpp does not");
      const bool again = form_.scores.contains(piece);
      if (again && piece != last_)
        refuse(text("merges of ", json_quoted(piece)), "stand apart, and llama.cpp has one score for a piece");
      if (!again) {
        ways += ways_of(piece);
        form_.scores.emplace(piece, -float(form_.scores.size()));
      }
      last_ = piece;
    }
    if (ways != merges_.size())
      refuse(text("merges: ", merges_.size(), " of ", ways, " ways to put pieces together"),
             "llama.cpp merges whatever gives a piece");
    const json added = part("added_tokens");
    std::unordered_set<std::string> whole;
    for (const json& token : added.is_array() ? added : json::array()) whole.insert(token.value("content", ""));
    for (const std::string& piece : pieces_)
      if (!form_.scores.contains(piece) && !whole.contains(piece) && ways_of(piece) > 0)
        refuse(text("piece ", json_quoted(piece)), "no merge gives it, and llama.cpp puts it together");
  }

  /// llama.cpp starts from characters, pieces or not.
  bool is_symbol(const std::string& part) const {
    return pieces_.contains(part) || first_character(part).size() == part.size();
  }

  std::size_t ways_of(const std::string& piece) const {
    std::size_t ways = 0;
    for (std::size_t at = 1; at < piece.size(); ++at)
      if (!utf8_continues(piece[at])) ways += is_symbol(piece.substr(0, at)) && is_symbol(piece.substr(at));
    return ways;
  }

  std::string path_;
  json file_;
  std::vector<MergePair> merges_;
  std::unordered_set<std::string> pieces_;
  std::string last_;
  bool cuts_words_ = false;
  PipelineForm form_;
};

}  // namespace

PipelineForm pipeline_form(const std::string& path) { return FormReader(path).read(); }

}  // namespace zero
