#include "models/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/error.h"
#include "comm/log.h"
#include "models/json_text.h"
#include "models/tokenizer_model.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view space_mark = "\u2581";
constexpr std::int64_t max_model_bytes = 256 << 20;
constexpr std::int64_t max_added_tokens = 100'000;
constexpr std::size_t cut_every = 1 << 14;

std::uint64_t fnv1a(std::string_view content, std::uint64_t hash = 0xCBF29CE484222325u) {
  for (const unsigned char c : content) hash = (hash ^ c) * 0x100000001B3u;
  return hash;
}

struct AddedToken {
  std::int64_t id = 0;
  std::string content;
};

std::int64_t added_id(const nlohmann::json& id, const std::string& path) {
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 1u << 28) throw InputError(text(path, ": a token's id must be a small whole number"));
  return id.get<std::int64_t>();
}

/// The tokens that a folder adds to the model's own, from tokenizer_config.json or its older companion added_tokens.json.
std::vector<AddedToken> read_added_tokens(const fs::path& folder) {
  std::vector<AddedToken> added;
  const std::string config_path = folder / "tokenizer_config.json", old_path = folder / "added_tokens.json";
  if (fs::exists(config_path)) {
    const auto config = parse_json(read_text_file(config_path, 16 << 20), config_path);
    const auto tokens = config.is_object() && config.contains("added_tokens_decoder") ? config["added_tokens_decoder"] : nlohmann::json::object();
    if (!tokens.is_object()) throw InputError(text(config_path, ": added_tokens_decoder must be an object"));
    for (const auto& [id, token] : tokens.items()) {
      const bool digits = !id.empty() && id.size() < 10 && std::all_of(id.begin(), id.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
      if (!digits || !token.is_object() || !token.contains("content") || !token["content"].is_string() || token["content"] == "")
        throw InputError(text(config_path, ": added_tokens_decoder: \"", id.substr(0, 40), "\" must be an id with an object that has content"));
      added.push_back({std::stoll(id), token["content"].get<std::string>()});
    }
  }
  if (added.empty() && fs::exists(old_path)) {
    const auto tokens = parse_json(read_text_file(old_path, 16 << 20), old_path);
    if (!tokens.is_object()) throw InputError(text(old_path, ": must be an object from token to id"));
    for (const auto& [content, id] : tokens.items()) {
      if (content.empty()) throw InputError(text(old_path, ": has an empty token"));
      added.push_back({added_id(id, old_path), content});
    }
  }
  if (static_cast<std::int64_t>(added.size()) > max_added_tokens) throw InputError(text(folder.string(), ": more than ", max_added_tokens, " added tokens"));
  std::sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return added;
}

std::unique_ptr<sentencepiece::SentencePieceProcessor> make_processor(const std::string& content, const std::string& path) {
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  const auto status = processor->LoadFromSerializedProto(content);
  if (!status.ok()) throw InputError(text(path, ": is refused by SentencePiece: ", status.ToString()));
  return processor;
}

/// Length of the UTF-8 character that begins with this byte; 0 for a byte that begins none.
std::size_t utf8_length(unsigned char first) {
  return first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

}  // namespace

struct Tokenizer::State {
  std::string path;
  std::uint64_t hash = 0;
  bool dummy_prefix = true;
  bool cut_at_newline = false, cut_at_space = false;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> start;    // for the start of a text
  std::unique_ptr<sentencepiece::SentencePieceProcessor> inside;   // for what follows: no dummy prefix
  std::vector<AddedToken> added;                                    // beyond the model's pieces, by id

  std::int64_t model_size() const { return start->GetPieceSize(); }
  void find_cuts(const TokenizerModelInfo& info);
  using Processor = sentencepiece::SentencePieceProcessor;
  void encode_plain(const Processor& processor, std::string_view text, std::vector<std::int32_t>& ids) const;
  void encode_cut(std::string_view text, std::vector<std::int32_t>& ids) const;
  std::size_t next_cut(std::string_view text, std::size_t from) const;
};

/// BPE merges only what some piece holds side by side. So between a character and the next one the text may be cut when no
/// piece holds the two together, if also the normalizer looks at every character alone.
void Tokenizer::State::find_cuts(const TokenizerModelInfo& info) {
  const bool local = info.model_type == 2 && info.character_map.empty() && !info.remove_extra_whitespaces && info.escape_whitespaces &&
                     !info.whitespace_as_suffix;
  cut_at_newline = cut_at_space = local;
  for (std::int64_t id = 0; id < model_size() && local; ++id) {
    const std::string_view piece = start->IdToPiece(static_cast<int>(id));
    if (piece.find('\n') != std::string_view::npos && piece.size() > 1) cut_at_newline = false;
    // a space mark behind anything but space marks
    std::size_t place = 0;
    while (piece.substr(place).starts_with(space_mark)) place += space_mark.size();
    if (piece.find(space_mark, place) != std::string_view::npos) cut_at_space = false;
  }
}

void Tokenizer::State::encode_plain(const Processor& processor, std::string_view text, std::vector<std::int32_t>& ids) const {
  std::vector<int> some;
  const auto status = processor.Encode({text.data(), text.size()}, &some);
  ZERO_CHECK(status.ok(), path + ": " + status.ToString());
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

void Tokenizer::State::encode_cut(std::string_view text, std::vector<std::int32_t>& ids) const {
  const Processor* processor = start.get();
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
    throw InputError(text(state->path, ": is missing; a SentencePiece tokenizer.model is needed",
                          folder && fs::exists(path + "/tokenizer.json") ? ", tokenizer.json alone is not read" : ""));
  const std::string content = read_text_file(state->path, max_model_bytes);
  const TokenizerModelInfo info = parse_tokenizer_model(content, state->path);
  state->hash = fnv1a(content);
  state->dummy_prefix = info.add_dummy_prefix;
  state->start = make_processor(content, state->path);
  state->inside = make_processor(without_dummy_prefix(content), state->path);
  state->find_cuts(info);
  const fs::path home = folder ? fs::path(path) : fs::path(path).parent_path();
  for (auto& token : read_added_tokens(home.empty() ? "." : home)) {
    if (token.id < state->model_size()) continue;  // a piece of the model, told again
    if (token.id != state->model_size() + static_cast<std::int64_t>(state->added.size()))
      throw InputError(text(home.string(), ": added token \"", token.content, "\" has the id ", token.id, "; ids must follow on the model's ",
                            state->model_size(), " without gap"));
    state->hash = fnv1a(token.content, state->hash);
    state->added.push_back(std::move(token));
  }
  return Tokenizer(std::move(state));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view content, EncodeOptions options) const {
  std::vector<std::int32_t> ids;
  const auto mark = [&](std::optional<std::int32_t> id, const char* name) {
    if (!id) throw InputError(text(state_->path, ": has no ", name, " token"));
    ids.push_back(*id);
  };
  if (options.bos) mark(bos(), "BOS");
  state_->encode_cut(content, ids);
  if (options.eos) mark(eos(), "EOS");
  return ids;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids) const {
  TextStream stream(*this, true);
  std::string content;
  for (const std::int32_t id : ids) content += stream.next(id);
  return content + stream.finish();
}

std::int64_t Tokenizer::vocab_size() const { return state_->model_size() + static_cast<std::int64_t>(state_->added.size()); }

const std::string& Tokenizer::piece(std::int64_t id) const {
  if (id < 0 || id >= vocab_size()) throw InputError(text("token id ", id, " is outside the tokenizer's vocabulary of ", vocab_size()));
  if (id >= state_->model_size()) return state_->added[static_cast<std::size_t>(id - state_->model_size())].content;
  return state_->start->IdToPiece(static_cast<int>(id));
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view piece) const {
  for (const auto& token : state_->added)
    if (token.content == piece) return static_cast<std::int32_t>(token.id);
  const int id = state_->start->PieceToId({piece.data(), piece.size()});
  if (state_->start->IdToPiece(id) != piece) return std::nullopt;
  return id;
}

float Tokenizer::score(std::int64_t id) const { return id < state_->model_size() ? state_->start->GetScore(static_cast<int>(id)) : 0.0f; }

TokenType Tokenizer::type(std::int64_t id) const {
  if (id >= state_->model_size()) return TokenType::control;
  const int piece = static_cast<int>(id);
  if (state_->start->IsControl(piece)) return TokenType::control;
  if (state_->start->IsUnknown(piece)) return TokenType::unknown;
  if (state_->start->IsByte(piece)) return TokenType::byte;
  return state_->start->IsUnused(piece) ? TokenType::unused : TokenType::normal;
}

namespace {
std::optional<std::int32_t> some(int id) { return id < 0 ? std::nullopt : std::optional<std::int32_t>(id); }
}  // namespace

std::optional<std::int32_t> Tokenizer::bos() const { return some(state_->start->bos_id()); }
std::optional<std::int32_t> Tokenizer::eos() const { return some(state_->start->eos_id()); }
std::optional<std::int32_t> Tokenizer::unk() const { return some(state_->start->unk_id()); }
bool Tokenizer::add_dummy_prefix() const { return state_->dummy_prefix; }
bool Tokenizer::newline_stands_alone() const { return state_->cut_at_newline; }
std::uint64_t Tokenizer::hash() const { return state_->hash; }
const std::string& Tokenizer::model_path() const { return state_->path; }

std::string TextStream::next(std::int32_t id) {
  const std::string& piece = tokenizer_.piece(id);
  switch (tokenizer_.type(id)) {
    case TokenType::control: return "";
    case TokenType::unknown: held_ += " \u2047 "; break;   // as SentencePiece writes it
    case TokenType::byte: held_ += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)); break;  // <0x0A>
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
    while (have < length && i + have < held_.size() && (static_cast<unsigned char>(held_[i + have]) & 0xC0) == 0x80) ++have;
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
