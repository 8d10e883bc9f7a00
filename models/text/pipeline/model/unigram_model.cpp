// Unigram of tokenizer.json, by the rules of Hugging Face tokenizers, models/unigram/model.rs. It selects the
// segmentation of a word that has the highest sum of scores. Neighbouring unknown characters are one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/chat_template.h"
#include "models/text/pipeline/component.h"
#include "models/text/pipeline/model/pair_table.h"
#include "models/text/pipeline/model/token_model.h"
#include "models/text/pipeline/model/vocabulary.h"

namespace zero {
namespace {

constexpr double unknown_penalty = 10;
constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

std::vector<std::string> read_pieces(Component& component, std::vector<double>& scores) {
  const nlohmann::json& vocab = component.value("vocab");
  if (!vocab.is_array() || vocab.size() > Vocabulary::most_ids) component.refuse("vocab", "must be a list of pieces");
  std::vector<std::string> pieces;
  for (const nlohmann::json& item : vocab) {
    const bool pair = item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_number();
    if (!pair) component.refuse("vocab", text("must hold pairs of a piece and its score, not ", item.dump()));
    pieces.push_back(item[0].get<std::string>());
    scores.push_back(item[1].get<double>());
    if (!std::isfinite(scores.back())) component.refuse("vocab", "has a score that is no number");
  }
  return pieces;
}

class UnigramModel : public TokenModel {
 public:
  explicit UnigramModel(Component& component) : UnigramModel(component, {}) {}

  void encode(std::string_view word, WordCache& cache, WordTokens& tokens) const override {
    cache.append(word, tokens, [this](std::string_view whole, WordTokens& out) { encode_word(whole, out); });
  }
  std::optional<std::int32_t> id_of(std::string_view piece) const override { return vocabulary_.id_of(piece); }
  const std::string* piece(std::int32_t id) const override { return vocabulary_.piece(id); }
  std::size_t size() const override { return vocabulary_.size(); }
  std::int32_t end_of_ids() const override { return vocabulary_.end_of_ids(); }
  bool is_bpe() const override { return false; }

 private:
  struct Best {
    double score = 0;
    std::size_t begin = nowhere;  // of the last piece on the way here
    std::int32_t id = 0;
  };

  UnigramModel(Component& component, std::vector<double> scores);
  void add_path(const std::string& piece);
  void encode_word(std::string_view word, WordTokens& tokens) const;
  std::vector<Best> best_ways(std::string_view word) const;
  void add_piece(std::string_view word, TextSpan where, WordTokens& tokens) const;

  std::vector<double> scores_;
  Vocabulary vocabulary_;
  PairTable<std::uint32_t> paths_;       // from a node by a byte to the next
  std::vector<std::int32_t> nodes_{-1};  // the piece whose text leads there
  std::int32_t unknown_ = -1;
  double unknown_score_ = 0;
  bool byte_fallback_ = false;
  std::string place_;
};

UnigramModel::UnigramModel(Component& component, std::vector<double> scores)
    : vocabulary_(read_pieces(component, scores)), place_(component.place()) {
  scores_ = std::move(scores);
  if (component.has("unk_id")) {
    unknown_ = static_cast<std::int32_t>(component.count("unk_id"));
    if (!vocabulary_.piece(unknown_)) component.refuse("unk_id", "must be the place of a piece");
  }
  component.pass_over("unk_id");
  byte_fallback_ = component.get<bool>("byte_fallback", false);
  unknown_score_ = std::numeric_limits<double>::infinity();
  for (const double score : scores_) unknown_score_ = std::min(unknown_score_, score);
  unknown_score_ -= unknown_penalty;
  for (std::size_t id = 0; id < scores_.size(); ++id) add_path(*vocabulary_.piece(static_cast<std::int32_t>(id)));
}

void UnigramModel::add_path(const std::string& piece) {
  std::uint32_t node = 0;
  for (const char byte : piece) {
    std::uint32_t& next = paths_[PairTable<std::uint32_t>::pair(node, static_cast<unsigned char>(byte))];
    if (next == 0) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back(-1);
    }
    node = next;
  }
  if (node != 0) nodes_[node] = *vocabulary_.id_of(piece);
}

std::vector<UnigramModel::Best> UnigramModel::best_ways(std::string_view word) const {
  std::vector<Best> ways(word.size() + 1);
  const auto offer = [&](std::size_t begin, std::size_t end, double score, std::int32_t id) {
    Best& way = ways[end];
    score += ways[begin].score;
    if (way.begin == nowhere || score > way.score) way = {score, begin, id};
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t character = first_character(word.substr(begin)).size();
    bool known = false;
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < word.size(); ++at) {
      const std::uint32_t* next =
          paths_.find(PairTable<std::uint32_t>::pair(node, static_cast<unsigned char>(word[at])));
      if (!next) break;
      node = *next;
      const std::int32_t id = nodes_[node];
      if (id < 0) continue;
      offer(begin, at + 1, scores_[static_cast<std::size_t>(id)], id);
      known = known || at + 1 - begin == character;
    }
    if (!known) offer(begin, begin + character, unknown_score_, unknown_);
    begin += character;
  }
  return ways;
}

void UnigramModel::encode_word(std::string_view word, WordTokens& tokens) const {
  const std::vector<Best> ways = best_ways(word);
  std::vector<TextSpan> pieces;
  bool unknown_before = false;
  for (std::size_t end = word.size(); end > 0; end = ways[end].begin) {
    const bool unknown = ways[end].id == unknown_;
    if (unknown && unknown_ < 0)
      throw InputError(text(place_, ": a text has an unknown character, and the file has no unk_id for it"));
    if (unknown && unknown_before)
      pieces.back().begin = ways[end].begin;
    else
      pieces.push_back({ways[end].begin, end});
    unknown_before = unknown;
  }
  std::reverse(pieces.begin(), pieces.end());
  for (const TextSpan& piece : pieces) add_piece(word, piece, tokens);
}

void UnigramModel::add_piece(std::string_view word, TextSpan where, WordTokens& tokens) const {
  const std::string_view piece = word.substr(where.begin, where.end - where.begin);
  const std::size_t first = tokens.size();
  const auto add = [&](std::int32_t id) {
    tokens.push_back({id, static_cast<std::uint32_t>(where.begin), static_cast<std::uint32_t>(where.end)});
  };
  if (const auto id = id_of(piece)) return add(*id);
  for (std::size_t i = 0; byte_fallback_ && i < piece.size(); ++i) {
    const auto id = id_of(byte_piece(static_cast<unsigned char>(piece[i])));
    if (!id) break;
    add(*id);
  }
  if (byte_fallback_ && tokens.size() - first == piece.size()) return;
  tokens.resize(first);
  add(unknown_);
}

}  // namespace

std::unique_ptr<const TokenModel> make_unigram_model(Component& component) {
  return std::make_unique<UnigramModel>(component);
}

}  // namespace zero
