// BPE of tokenizer.json, by the rules of Hugging Face tokenizers, models/bpe/model.rs.
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"
#include "base/utf8.h"
#include "models/text/pipeline/component.h"
#include "models/text/pipeline/model/merge_list.h"
#include "models/text/pipeline/model/symbol_merger.h"
#include "models/text/pipeline/model/token_model.h"
#include "models/text/pipeline/model/vocabulary.h"

namespace zero {
namespace {

class BpeModel : public TokenModel {
 public:
  explicit BpeModel(Component& component);

  void encode(std::string_view word, WordCache& cache, WordTokens& tokens) const override;
  std::optional<std::int32_t> id_of(std::string_view piece) const override { return vocabulary_.id_of(piece); }
  const std::string* piece(std::int32_t id) const override { return vocabulary_.piece(id); }
  std::size_t size() const override { return vocabulary_.size(); }
  std::int32_t end_of_ids() const override { return vocabulary_.end_of_ids(); }
  bool is_bpe() const override { return true; }

 private:
  static constexpr std::size_t short_word = 64;

  void read_options(Component& component);
  void add_merges(Component& component);
  std::size_t joint_before(std::string_view word, std::size_t from) const;
  void encode_part(std::string_view part, WordTokens& tokens) const;
  void symbols_of(std::string_view word, std::vector<MergeSymbol>& symbols) const;
  std::int32_t id_of_character(std::string_view character, bool begins, bool ends) const;
  bool add_bytes(std::string_view character, std::vector<MergeSymbol>& symbols) const;
  std::int32_t unknown() const;

  Vocabulary vocabulary_;
  RankedMerges merges_;
  PairTable<bool> joints_;  // the last and first characters that some merge joins
  std::array<std::int32_t, 128> ascii_{};
  std::array<std::int32_t, 256> bytes_{};
  std::optional<std::string> unknown_;
  std::string prefix_, suffix_, place_;
  bool fuse_unknown_ = false, byte_fallback_ = false, whole_words_ = false;
};

BpeModel::BpeModel(Component& component) : vocabulary_(component), place_(component.place()) {
  read_options(component);
  add_merges(component);
  bytes_.fill(-1);
  for (int byte = 0; byte_fallback_ && byte < 256; ++byte)
    bytes_[static_cast<std::size_t>(byte)] = id_of(byte_piece(static_cast<unsigned char>(byte))).value_or(-1);
  for (std::size_t code = 0; code < ascii_.size(); ++code)
    ascii_[code] = id_of(std::string(1, static_cast<char>(code))).value_or(-1);
}

void BpeModel::read_options(Component& component) {
  if (component.has("dropout"))
    component.refuse("dropout", "must be null: ids would be drawn at random; set it to null in the file");
  component.pass_over("dropout");
  if (component.has("unk_token")) unknown_ = component.get<std::string>("unk_token");
  component.pass_over("unk_token");
  prefix_ = component.get<std::string>("continuing_subword_prefix", "");
  suffix_ = component.get<std::string>("end_of_word_suffix", "");
  fuse_unknown_ = component.get<bool>("fuse_unk", false);
  byte_fallback_ = component.get<bool>("byte_fallback", false);
  whole_words_ = component.get<bool>("ignore_merges", false);
}

void BpeModel::add_merges(Component& component) {
  const std::vector<MergePair> list = read_merges(component);
  merges_ = RankedMerges(list.size());
  const auto id = [&](const std::string& piece) {
    const auto found = id_of(piece);
    if (!found)
      component.refuse("merges", text("names or makes ", json_quoted(piece), ", which is not in the vocabulary"));
    return static_cast<std::uint32_t>(*found);
  };
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto& [left, right] = list[rank];
    if (right.size() < prefix_.size()) component.refuse("merges", "has a pair without continuing_subword_prefix");
    const std::string_view added = std::string_view(right).substr(prefix_.size());
    const std::uint32_t joined = id(left + std::string(added));
    merges_[RankedMerges::pair(id(left), id(right))] = {static_cast<std::uint32_t>(rank),
                                                        static_cast<std::int32_t>(joined)};
    if (!left.empty() && !added.empty())
      joints_[RankedMerges::pair(code_point(last_character(left)), code_point(first_character(added)))] = true;
  }
}

/// Returns the next position after `from` across which no merge can ever join text. Returns the word's end if there is
/// none. The ids of both parts then equal those of the whole word. `from` begins a character.
std::size_t BpeModel::joint_before(std::string_view word, std::size_t from) const {
  std::string_view before = first_character(word.substr(from));
  for (std::size_t at = from + before.size(); at < word.size();) {
    const std::string_view next = first_character(word.substr(at));
    const bool joined = joints_.find(RankedMerges::pair(code_point(before), code_point(next))) != nullptr;
    // next to an unknown character, fuse_unk and bytes would matter
    if (!joined && id_of_character(before, true, false) >= 0 && id_of_character(next, true, false) >= 0) return at;
    at += next.size();
    before = next;
  }
  return word.size();
}

void BpeModel::encode(std::string_view word, WordCache& cache, WordTokens& tokens) const {
  const auto part = [this](std::string_view some, WordTokens& out) { encode_part(some, out); };
  const auto whole = [](std::string_view word, std::int32_t id) {
    return WordToken{id, 0, static_cast<std::uint32_t>(word.size())};
  };
  if (word.size() <= short_word || !prefix_.empty() || !suffix_.empty()) {
    cache.append(word, tokens, [&](std::string_view some, WordTokens& out) {
      const auto known = whole_words_ ? id_of(some) : std::nullopt;
      known ? out.push_back(whole(some, *known)) : part(some, out);
    });
    return;
  }
  if (whole_words_) {
    if (const auto known = id_of(word)) {
      tokens.push_back(whole(word, *known));
      return;
    }
  }
  for (std::size_t begin = 0, end = 0; begin < word.size(); begin = end) {
    end = joint_before(word, begin);
    const std::string_view some = word.substr(begin, end - begin);
    const std::size_t first = tokens.size();
    whole_words_ ? part(some, tokens) : cache.append(some, tokens, part);
    for (std::size_t i = first; i < tokens.size(); ++i) {
      tokens[i].begin += static_cast<std::uint32_t>(begin);
      tokens[i].end += static_cast<std::uint32_t>(begin);
    }
  }
}

void BpeModel::encode_part(std::string_view part, WordTokens& tokens) const {
  std::uint32_t at = 0;
  thread_local std::vector<MergeSymbol> symbols;
  symbols.clear();
  symbols_of(part, symbols);
  merge_symbols(merges_, symbols);
  for (const MergeSymbol& symbol : symbols) {
    tokens.push_back({symbol.id, at, at + symbol.size});
    at += symbol.size;
  }
  if (symbols.capacity() > 1 << 16) symbols = {};
}

void BpeModel::symbols_of(std::string_view word, std::vector<MergeSymbol>& symbols) const {
  MergeSymbol pending{-1, 0};  // the unknown token of characters so far
  const auto take_pending = [&] {
    if (pending.id >= 0) symbols.push_back(pending);
    pending = {-1, 0};
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = first_character(word.substr(at));
    const auto size = static_cast<std::uint32_t>(character.size());
    const bool begins = at == 0;
    at += size;
    const std::int32_t known = id_of_character(character, begins, at == word.size());
    if (known >= 0) {
      take_pending();
      symbols.push_back({known, size});
      continue;
    }
    if (byte_fallback_) {
      std::string whole(character);
      if (!begins) whole.insert(0, prefix_);
      if (at == word.size()) whole += suffix_;
      if (add_bytes(whole, symbols)) continue;  // here too, pending symbols come behind the bytes
    }
    if (!unknown_) continue;
    if (!fuse_unknown_) take_pending();
    pending = {unknown(), pending.size + size};
  }
  take_pending();
}

std::int32_t BpeModel::id_of_character(std::string_view character, bool begins, bool ends) const {
  const bool plain = (begins || prefix_.empty()) && (!ends || suffix_.empty());
  if (plain && character.size() == 1) return ascii_[static_cast<unsigned char>(character.front())];
  if (plain) return id_of(character).value_or(-1);
  std::string whole(begins ? "" : prefix_);
  whole.append(character).append(ends ? suffix_ : "");
  return id_of(whole).value_or(-1);
}

bool BpeModel::add_bytes(std::string_view character, std::vector<MergeSymbol>& symbols) const {
  for (const char byte : character)
    if (bytes_[static_cast<unsigned char>(byte)] < 0) return false;
  for (const char byte : character) symbols.push_back({bytes_[static_cast<unsigned char>(byte)], 1});
  return true;
}

std::int32_t BpeModel::unknown() const {
  if (const auto id = id_of(*unknown_)) return *id;
  throw InputError(text(place_, ": a text has an unknown character, and unk_token \"", *unknown_,
                        "\" is not in the vocabulary; name one that is"));
}

}  // namespace

std::unique_ptr<const TokenModel> make_bpe_model(Component& component) { return std::make_unique<BpeModel>(component); }

}  // namespace zero
