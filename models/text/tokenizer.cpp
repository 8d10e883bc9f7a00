#include "models/text/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/utf8.h"
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

}  // namespace

struct Tokenizer::State {
  std::string path;
  std::uint64_t hash = 0;
  bool dummy_prefix = true;
  bool cut_at_newline = false, cut_at_space = false;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> start;   // for the start of a text
  std::unique_ptr<sentencepiece::SentencePieceProcessor> inside;  // for what follows: no dummy prefix
  std::vector<std::string> further;                               // tokens beyond the model's pieces, by id
  std::vector<TokenType> types;                                   // of every id
  std::vector<AddedToken> added;                                  // see added_tokens()
  std::optional<std::int32_t> bos, eos;
  const char* beside_merges = nullptr;

  std::int64_t model_size() const { return start->GetPieceSize(); }
  const std::string& piece(std::int64_t id) const;
  std::optional<std::int32_t> id_of(std::string_view piece) const;
  void add_tokens(TokenizerFolder told, const TokenizerModelInfo& info, const std::string& home);
  std::optional<std::int32_t> mark(const std::optional<std::string>& name, int otherwise,
                                   const std::string& home) const;
  void hash_tokens();
  void find_cuts(const TokenizerModelInfo& info);
  using Processor = sentencepiece::SentencePieceProcessor;
  void encode_plain(const Processor& processor, std::string_view content, std::vector<std::int32_t>& ids) const;
  void encode_cut(std::string_view text, bool at_start, std::vector<std::int32_t>& ids) const;
  std::size_t next_cut(std::string_view text, std::size_t from) const;
};

/// BPE merges only what some piece holds side by side. So between a character and the next one the text may be cut when
/// no piece holds the two together, if also the normalizer looks at every character alone.
void Tokenizer::State::find_cuts(const TokenizerModelInfo& info) {
  const bool local = info.model_type == 2 && info.character_map.empty() && !info.remove_extra_whitespaces &&
                     info.escape_whitespaces && !info.whitespace_as_suffix;
  cut_at_newline = cut_at_space = local;
  for (std::int64_t id = 0; id < model_size() && local; ++id) {
    const std::string_view piece = start->IdToPiece(static_cast<int>(id));
    if (piece.find('\n') != std::string_view::npos && piece.size() > 1) cut_at_newline = false;
    if (piece.find(' ') != std::string_view::npos) cut_at_space = false;  // of a user-defined piece
    // a space mark behind anything but space marks
    std::size_t place = 0;
    while (piece.substr(place).starts_with(space_mark)) place += space_mark.size();
    if (piece.find(space_mark, place) != std::string_view::npos) cut_at_space = false;
  }
}

void Tokenizer::State::encode_plain(const Processor& processor, std::string_view content,
                                    std::vector<std::int32_t>& ids) const {
  std::vector<int> some;
  const auto status = processor.Encode({content.data(), content.size()}, &some);
  if (!status.ok()) throw InputError(text(path, ": SentencePiece cannot encode with it: ", status.ToString()));
  ids.insert(ids.end(), some.begin(), some.end());
}

/// The first place from `from` on where the text may be cut; its end when there is none.
std::size_t Tokenizer::State::next_cut(std::string_view text, std::size_t from) const {
  for (std::size_t i = std::max<std::size_t>(from, 1); i < text.size(); ++i) {
    if (cut_at_newline && text[i] == '\n') return i;
    // behind an ASCII character, so that the bytes on both sides are characters by themselves whatever came before
    if (cut_at_space && text[i] == ' ' && text[i - 1] > ' ' && text[i - 1] < 0x7F) return i;
  }
  return text.size();
}

void Tokenizer::State::encode_cut(std::string_view text, bool at_start, std::vector<std::int32_t>& ids) const {
  const Processor* processor = at_start ? start.get() : inside.get();
  while (!text.empty()) {
    const std::size_t cut = next_cut(text, cut_every);
    encode_plain(*processor, text.substr(0, cut), ids);
    text.remove_prefix(cut);
    processor = inside.get();
  }
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::string& path) {
  auto state = std::make_unique<State>();
  const bool folder = fs::is_directory(path);
  state->path = folder ? path + "/tokenizer.model" : path;
  if (!fs::exists(state->path))
    throw InputError(text(
        state->path, ": is missing; a SentencePiece tokenizer.model is needed",
        folder && fs::exists(path + "/tokenizer.json")
            ? "; the tokenizer.json beside it is not read. Token ids need no tokenizer: zero_train takes them as .bin, zero_generate as --ids with --logits"
            : ""));
  const std::string content = read_text_file(state->path, max_model_bytes);
  const TokenizerModelInfo info = parse_tokenizer_model(content, state->path);
  state->hash = fnv1a(content);
  state->dummy_prefix = info.add_dummy_prefix;
  state->start = make_processor(content, state->path);
  state->inside = make_processor(without_dummy_prefix(content), state->path);
  state->find_cuts(info);
  state->beside_merges = info.beside_merges();
  const fs::path home = folder ? fs::path(path) : fs::path(path).parent_path();
  TokenizerFolder told = read_tokenizer_folder(home.empty() ? "." : home);
  const auto bos = told.bos, eos = told.eos;
  state->add_tokens(std::move(told), info, home.string());
  state->bos = state->mark(bos, state->start->bos_id(), home.string());
  state->eos = state->mark(eos, state->start->eos_id(), home.string());
  state->hash_tokens();
  return Tokenizer(std::move(state));
}

/// Joins the model's own control and user-defined pieces with what the folder tells.
void Tokenizer::State::add_tokens(TokenizerFolder told, const TokenizerModelInfo& info, const std::string& home) {
  for (int id = 0; id < model_size(); ++id) types.push_back(type_of_piece(*start, id));
  for (const std::int32_t id : info.user_defined) types[static_cast<std::size_t>(id)] = TokenType::user_defined;
  std::map<std::int64_t, AddedToken> tokens;
  for (std::int64_t id = 0; id < model_size(); ++id) {
    const TokenType type = types[static_cast<std::size_t>(id)];
    const bool special = type == TokenType::control || type == TokenType::unknown;
    if (special || type == TokenType::user_defined) tokens[id] = {.id = id, .content = piece(id), .special = special};
  }
  const auto add = [&](AddedToken token) {
    TokenType& type = types[static_cast<std::size_t>(token.id)];
    token.special = token.special || type == TokenType::control || type == TokenType::unknown;
    if (type == TokenType::normal || type == TokenType::unused || type == TokenType::user_defined)
      type = token.special ? TokenType::control : TokenType::user_defined;
    tokens[token.id] = std::move(token);
  };
  for (AddedToken& token : told.tokens) {
    const auto next = model_size() + static_cast<std::int64_t>(further.size());
    if (token.id > next)
      throw InputError(text(home, ": added token \"", token.content, "\" has the id ", token.id,
                            "; ids must follow on the model's ", model_size(), " without gap"));
    if (token.id < model_size() && piece(token.id) != token.content)
      throw InputError(text(home, ": added token \"", token.content, "\" has the id ", token.id,
                            ", which is the piece \"", piece(token.id), "\" of tokenizer.model"));
    if (token.id == next) {
      further.push_back(token.content);
      types.push_back(TokenType::normal);
    }
    add(std::move(token));
  }
  for (AddedToken& token : told.named) {
    const auto id = id_of(token.content);
    if (!id) continue;
    token.id = *id;
    if (!tokens.contains(*id)) add(std::move(token));  // flags of a token that is told elsewhere count there
  }
  for (auto& [id, token] : tokens) added.push_back(std::move(token));
}

/// The id of BOS or EOS: what the folder names, else the model's own.
std::optional<std::int32_t> Tokenizer::State::mark(const std::optional<std::string>& name, int otherwise,
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

void Tokenizer::State::hash_tokens() {
  for (const AddedToken& token : added)
    hash = fnv1a(text(token.id, token.special, token.lstrip, token.rstrip, token.single_word, token.normalized,
                      token.content, '\n'),
                 hash);
}

const std::string& Tokenizer::State::piece(std::int64_t id) const {
  return id < model_size() ? start->IdToPiece(static_cast<int>(id))
                           : further[static_cast<std::size_t>(id - model_size())];
}

std::optional<std::int32_t> Tokenizer::State::id_of(std::string_view piece) const {
  for (std::size_t i = 0; i < further.size(); ++i)
    if (further[i] == piece) return static_cast<std::int32_t>(model_size() + static_cast<std::int64_t>(i));
  const int id = start->PieceToId({piece.data(), piece.size()});
  if (start->IdToPiece(id) != piece) return std::nullopt;
  return id;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view content, EncodeOptions options) const {
  std::vector<std::int32_t> ids;
  const auto mark = [&](std::optional<std::int32_t> id, const char* name) {
    if (!id) throw InputError(text(state_->path, ": has no ", name, " token"));
    ids.push_back(*id);
  };
  if (options.bos) mark(bos(), "BOS");
  state_->encode_cut(content, !options.inside, ids);
  if (options.eos) mark(eos(), "EOS");
  return ids;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids) const {
  TextStream stream(*this, true);
  std::string content;
  for (const std::int32_t id : ids) content += stream.next(id);
  return content + stream.finish();
}

std::int64_t Tokenizer::vocab_size() const { return static_cast<std::int64_t>(state_->types.size()); }
std::int64_t Tokenizer::model_size() const { return state_->model_size(); }

const std::string& Tokenizer::piece(std::int64_t id) const {
  if (id < 0 || id >= vocab_size())
    throw InputError(text("token id ", id, " is outside the tokenizer's vocabulary of ", vocab_size()));
  return state_->piece(id);
}

void Tokenizer::require_plain_merges(std::string_view use) const {
  if (!state_->beside_merges) return;
  throw InputError(
      text(state_->path, ": ", state_->beside_merges, ", which serves texts (.txt) only; ", use,
           " would get other ids than the model was trained on: they need a model made by spm_train --model_type=bpe "
           "--normalization_rule_name=identity --remove_extra_whitespaces=false, or token ids (.bin, --ids)"));
}

const char* Tokenizer::beside_merges() const { return state_->beside_merges; }
std::optional<std::int32_t> Tokenizer::id_of(std::string_view piece) const { return state_->id_of(piece); }
float Tokenizer::score(std::int64_t id) const {
  return id < state_->model_size() ? state_->start->GetScore(static_cast<int>(id)) : 0.0f;
}
TokenType Tokenizer::type(std::int64_t id) const { return state_->types.at(static_cast<std::size_t>(id)); }
const std::vector<AddedToken>& Tokenizer::added_tokens() const { return state_->added; }
std::optional<std::int32_t> Tokenizer::bos() const { return state_->bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return state_->eos; }
std::optional<std::int32_t> Tokenizer::unk() const {
  const int id = state_->start->unk_id();
  return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
}
bool Tokenizer::add_dummy_prefix() const { return state_->dummy_prefix; }
std::size_t Tokenizer::next_cut(std::string_view text, std::size_t from) const { return state_->next_cut(text, from); }
std::uint64_t Tokenizer::hash() const { return state_->hash; }
const std::string& Tokenizer::model_path() const { return state_->path; }

std::string TextStream::next(std::int32_t id) {
  const std::string& piece = tokenizer_.piece(id);
  switch (tokenizer_.type(id)) {
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
  at_start_ = false;
  return complete(false);
}

std::string TextStream::finish() { return complete(true); }

/// Takes whole characters out of what is held; bytes that can never become one are replaced one by one.
std::string TextStream::complete(bool all) {
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

}  // namespace zero
