// The TokenizerEngine for a SentencePiece model.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/tokenizer_engine.h"
#include "models/text/tokenizer_model.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view space_mark = "\u2581";
constexpr std::int64_t max_model_bytes = 256 << 20;
constexpr std::size_t cut_every = 1 << 14;

std::unique_ptr<sentencepiece::SentencePieceProcessor> make_processor(const std::string& content,
                                                                      const std::string& path) {
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  const auto status = processor->LoadFromSerializedProto(content);
  if (!status.ok()) throw InputError(text(path, ": is refused by SentencePiece: ", status.ToString()));
  return processor;
}

TokenType type_of_piece(const sentencepiece::SentencePieceProcessor& processor, int piece) {
  if (processor.IsControl(piece)) return TokenType::control;
  if (processor.IsUnknown(piece)) return TokenType::unknown;
  if (processor.IsByte(piece)) return TokenType::byte;
  return processor.IsUnused(piece) ? TokenType::unused : TokenType::normal;
}

class SentencePieceEngine : public TokenizerEngine {
 public:
  explicit SentencePieceEngine(const std::string& path);

  std::vector<std::int32_t> encode(std::string_view text, bool inside) const override;
  std::string decode(const std::vector<std::int32_t>& ids) const override;
  std::unique_ptr<IdStream> stream(bool at_start) const override;
  std::size_t next_cut(std::string_view text, std::size_t from) const override;
  const std::string& piece(std::int64_t id) const override;
  std::optional<std::int32_t> id_of(std::string_view piece) const override;
  float score(std::int64_t id) const override {
    return id < model_size() ? start_->GetScore(static_cast<int>(id)) : 0.0f;
  }
  TokenType type(std::int64_t id) const override { return types_.at(static_cast<std::size_t>(id)); }
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> sentencepiece() const override { return start_; }
  bool removes_spaces() const { return removes_spaces_; }

 private:
  using Processor = sentencepiece::SentencePieceProcessor;

  std::int64_t model_size() const { return start_->GetPieceSize(); }
  void add_tokens(TokenizerFolder told, const TokenizerModelInfo& info, const std::string& home);
  std::optional<std::int32_t> mark(const std::optional<std::string>& name, int otherwise,
                                   const std::string& home) const;
  void find_cuts(const TokenizerModelInfo& info);
  void encode_plain(const Processor& processor, std::string_view content, std::vector<std::int32_t>& ids) const;

  bool removes_spaces_ = false;  // all but one between words
  bool cut_at_newline_ = false, cut_at_space_ = false;
  std::shared_ptr<const Processor> start_;   // for the start of a text
  std::unique_ptr<const Processor> inside_;  // for text behind a cut: no dummy prefix
  std::vector<std::string> further_;         // tokens beyond the model's pieces, by id
  std::vector<TokenType> types_;             // of every id
};

/// Holds back a character until its last byte is there.
class PieceStream : public IdStream {
 public:
  PieceStream(const SentencePieceEngine& engine, bool at_start) : engine_(engine), at_start_(at_start) {}

  std::string next(std::int32_t id) override;
  std::string finish() override { return complete(true); }

 private:
  std::string complete(bool all);

  const SentencePieceEngine& engine_;
  bool at_start_;
  std::string held_;
};

/// BPE merges only characters that are adjacent in some piece. The text may therefore be cut between two characters if
/// no piece contains both in a row, and if the normalizer treats every character separately.
void SentencePieceEngine::find_cuts(const TokenizerModelInfo& info) {
  const bool local = info.model_type == 2 && info.character_map.empty() && !info.remove_extra_whitespaces &&
                     info.escape_whitespaces && !info.whitespace_as_suffix;
  cut_at_newline_ = cut_at_space_ = local;
  for (std::int64_t id = 0; id < model_size() && local; ++id) {
    const std::string_view piece = start_->IdToPiece(static_cast<int>(id));
    if (piece.find('\n') != std::string_view::npos && piece.size() > 1) cut_at_newline_ = false;
    if (piece.find(' ') != std::string_view::npos) cut_at_space_ = false;  // of a user-defined piece
    // a space mark after anything but space marks
    std::size_t place = 0;
    while (piece.substr(place).starts_with(space_mark)) place += space_mark.size();
    if (piece.find(space_mark, place) != std::string_view::npos) cut_at_space_ = false;
  }
}

void SentencePieceEngine::encode_plain(const Processor& processor, std::string_view content,
                                       std::vector<std::int32_t>& ids) const {
  std::vector<int> some;
  const auto status = processor.Encode({content.data(), content.size()}, &some);
  if (!status.ok()) throw InputError(text(facts_.path, ": SentencePiece cannot encode with it: ", status.ToString()));
  ids.insert(ids.end(), some.begin(), some.end());
}

/// The first position at or after `from` where the text may be cut, or its end if there is none.
std::size_t SentencePieceEngine::next_cut(std::string_view text, std::size_t from) const {
  for (std::size_t i = std::max<std::size_t>(from, 1); i < text.size(); ++i) {
    if (cut_at_newline_ && text[i] == '\n') return i;
    // after an ASCII character, so that the text on both sides is valid whatever precedes it
    if (cut_at_space_ && text[i] == ' ' && text[i - 1] > ' ' && text[i - 1] < 0x7F) return i;
  }
  return text.size();
}

std::vector<std::int32_t> SentencePieceEngine::encode(std::string_view text, bool inside) const {
  std::vector<std::int32_t> ids;
  const Processor* processor = inside ? inside_.get() : start_.get();
  while (!text.empty()) {
    const std::size_t cut = next_cut(text, cut_every);
    encode_plain(*processor, text.substr(0, cut), ids);
    text.remove_prefix(cut);
    processor = inside_.get();
  }
  return ids;
}

SentencePieceEngine::SentencePieceEngine(const std::string& path) {
  const bool folder = is_folder(path);
  facts_.path = folder ? Tokenizer::sentencepiece_in(path) : path;
  if (!is_there(facts_.path))
    throw InputError(text(folder ? path + "/tokenizer.model" : path, ": is missing; a SentencePiece model is needed"));
  const std::string content = read_text_file(facts_.path, max_model_bytes);
  const TokenizerModelInfo info = parse_tokenizer_model(content, facts_.path);
  facts_.hash = fnv1a(content);
  facts_.dummy_prefix = info.add_dummy_prefix;
  removes_spaces_ = info.remove_extra_whitespaces;
  facts_.beside_merges = info.beside_merges();
  start_ = make_processor(content, facts_.path);
  inside_ = make_processor(without_dummy_prefix(content), facts_.path);
  find_cuts(info);
  const fs::path home = folder ? fs::path(path) : fs::path(path).parent_path();
  TokenizerFolder told = read_tokenizer_folder(home.empty() ? "." : home);
  const auto bos = told.bos, eos = told.eos;
  add_tokens(std::move(told), info, home.string());
  facts_.bos = mark(bos, start_->bos_id(), home.string());
  facts_.eos = mark(eos, start_->eos_id(), home.string());
  if (const int id = start_->unk_id(); id >= 0) facts_.unk = id;
  const std::string settings = home / "tokenizer_config.json";
  const bool opens = json_value<bool>(read_json_object(settings), "add_bos_token", true, settings);
  if (facts_.bos && opens) facts_.opening.push_back(*facts_.bos);
  if (facts_.eos) facts_.closing.push_back(*facts_.eos);
  facts_.model_size = model_size();
  facts_.vocab_size = static_cast<std::int64_t>(types_.size());
  facts_.hash_added();
}

/// Joins the model's own control and user-defined pieces with the folder's tokens.
void SentencePieceEngine::add_tokens(TokenizerFolder told, const TokenizerModelInfo& info, const std::string& home) {
  for (int id = 0; id < model_size(); ++id) types_.push_back(type_of_piece(*start_, id));
  for (const std::int32_t id : info.user_defined) types_[static_cast<std::size_t>(id)] = TokenType::user_defined;
  std::map<std::int64_t, AddedToken> tokens;
  for (std::int64_t id = 0; id < model_size(); ++id) {
    const TokenType type = types_[static_cast<std::size_t>(id)];
    const bool special = type == TokenType::control || type == TokenType::unknown;
    if (special || type == TokenType::user_defined) tokens[id] = {.id = id, .content = piece(id), .special = special};
  }
  const auto add = [&](AddedToken token) {
    TokenType& type = types_[static_cast<std::size_t>(token.id)];
    token.special = token.special || type == TokenType::control || type == TokenType::unknown;
    if (type == TokenType::normal || type == TokenType::unused || type == TokenType::user_defined)
      type = token.special ? TokenType::control : TokenType::user_defined;
    tokens[token.id] = std::move(token);
  };
  for (AddedToken& token : told.tokens) {
    const auto next = model_size() + static_cast<std::int64_t>(further_.size());
    if (token.id > next)
      throw InputError(text(home, ": added token \"", token.content, "\" has the id ", token.id,
                            "; ids must follow on the model's ", model_size(), " without gap"));
    if (token.id < model_size() && piece(token.id) != token.content)
      throw InputError(text(home, ": added token \"", token.content, "\" has the id ", token.id,
                            ", which is the piece \"", piece(token.id), "\" of tokenizer.model"));
    if (token.id == next) {
      further_.push_back(token.content);
      types_.push_back(TokenType::normal);
    }
    add(std::move(token));
  }
  for (AddedToken& token : told.named) {
    const auto id = id_of(token.content);
    if (!id) continue;
    token.id = *id;
    if (!tokens.contains(*id)) add(std::move(token));  // flags of a token that another file names count there
  }
  for (auto& [id, token] : tokens) facts_.added.push_back(std::move(token));
}

/// The id of BOS or EOS: the one that the folder names, otherwise the model's.
std::optional<std::int32_t> SentencePieceEngine::mark(const std::optional<std::string>& name, int otherwise,
                                                      const std::string& home) const {
  if (!name) return otherwise < 0 ? std::nullopt : std::optional<std::int32_t>(otherwise);
  if (name->empty()) return std::nullopt;
  const auto id = id_of(*name);
  if (!id)
    throw InputError(text(
        home, ": names \"", *name,
        "\" as BOS or EOS, which is no token of the tokenizer: mend tokenizer_config.json or give the token an id there"));
  return id;
}

const std::string& SentencePieceEngine::piece(std::int64_t id) const {
  return id < model_size() ? start_->IdToPiece(static_cast<int>(id))
                           : further_[static_cast<std::size_t>(id - model_size())];
}

std::optional<std::int32_t> SentencePieceEngine::id_of(std::string_view piece) const {
  for (std::size_t i = 0; i < further_.size(); ++i)
    if (further_[i] == piece) return static_cast<std::int32_t>(model_size() + static_cast<std::int64_t>(i));
  const int id = start_->PieceToId({piece.data(), piece.size()});
  if (start_->IdToPiece(id) != piece) return std::nullopt;
  return id;
}

std::string SentencePieceEngine::decode(const std::vector<std::int32_t>& ids) const {
  PieceStream stream(*this, facts_.dummy_prefix || removes_spaces_);
  std::string content;
  for (const std::int32_t id : ids) content += stream.next(id);
  return content + stream.finish();
}

std::unique_ptr<IdStream> SentencePieceEngine::stream(bool at_start) const {
  return std::make_unique<PieceStream>(*this, at_start && (facts_.dummy_prefix || removes_spaces_));
}

std::string PieceStream::next(std::int32_t id) {
  const std::string& piece = engine_.piece(id);
  switch (engine_.type(id)) {
    case TokenType::control:
      return "";
    case TokenType::unknown:
      held_ += " \u2047 ";
      break;  // as SentencePiece writes it
    case TokenType::byte:
      held_ += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
      break;  // <0x0A>
    default:
      for (std::size_t i = 0; i < piece.size();) {
        const bool space = std::string_view(piece).substr(i).starts_with(space_mark);
        held_ += space ? ' ' : piece[i];
        i += space ? space_mark.size() : 1;
      }
      if (at_start_ && held_.starts_with(' ')) held_.erase(0, 1);
  }
  at_start_ = at_start_ && engine_.removes_spaces() && held_.empty();  // then all spaces in front go
  return complete(false);
}

/// Takes whole characters out of the held bytes. Bytes that can never become one are replaced one by one.
std::string PieceStream::complete(bool all) {
  std::string out;
  std::size_t i = 0;
  while (i < held_.size()) {
    const std::size_t length = utf8_length(static_cast<unsigned char>(held_[i]));
    std::size_t have = length == 0 ? 0 : 1;
    while (have < length && i + have < held_.size() && utf8_continues(held_[i + have])) ++have;
    if (length != 0 && have == length) {
      out.append(held_, i, length);
      i += length;
    } else if (length != 0 && i + have == held_.size() && !all) {
      break;  // its other bytes may still come
    } else {
      out += "\uFFFD";
      ++i;
    }
  }
  held_.erase(0, i);
  return out;
}

}  // namespace

std::unique_ptr<const TokenizerEngine> make_sentencepiece_engine(const std::string& path) {
  return std::make_unique<const SentencePieceEngine>(path);
}

}  // namespace zero
