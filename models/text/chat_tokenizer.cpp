#include "models/text/chat_tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/added_token_finder.h"
#include "models/text/merge_table.h"
#include "models/text/pipeline/text_pipeline.h"
#include "models/text/sentencepiece_spans.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

constexpr std::string_view space_mark = "\u2581";

enum class Prefix { never, first, always };  // which parts between special tokens get a space in front

// One symbol of a text under merging: a link of a chain.
struct Symbol {
  std::int32_t id;
  int previous, next;  // -1: none
  TextSpan span;
  bool merged = false;  // into the one before it
};

struct Candidate {
  std::uint64_t rank;
  int place;
  std::int32_t id;  // that the symbols at place and behind it would make
  bool operator<(const Candidate& other) const { return std::pair(other.rank, other.place) < std::pair(rank, place); }
};

void merge_all(std::vector<Symbol>& symbols, const MergeTable& merges) {
  std::priority_queue<Candidate> queue;
  const auto consider = [&](int place) {
    const int next = place < 0 ? -1 : symbols[place].next;
    if (next < 0) return;
    if (const Merge* merge = merges.find(symbols[place].id, symbols[next].id))
      queue.push({merge->rank, place, merge->id});
  };
  for (int i = 0; i < static_cast<int>(symbols.size()); ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.place];
    if (left.merged || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    const Merge* merge = merges.find(left.id, right.id);
    if (!merge || merge->id != best.id) continue;  // one of the two has changed since
    left.id = best.id;
    left.span.end = right.span.end;
    right.merged = true;
    left.next = right.next;
    if (left.next >= 0) symbols[left.next].previous = best.place;
    consider(left.previous);
    consider(best.place);
  }
}

std::vector<std::pair<std::string, std::string>> read_merges(const std::string& path) {
  const nlohmann::json file = parse_json(read_text_file(path), path);
  const auto refuse = [&] { throw InputError(text(path, ": model.merges must be a list of pairs of pieces")); };
  if (!file.is_object() || !file.contains("model") || !file["model"].is_object() || !file["model"].contains("merges"))
    refuse();
  const nlohmann::json& merges = file["model"]["merges"];
  std::vector<std::pair<std::string, std::string>> list;
  if (!merges.is_array()) refuse();
  for (const nlohmann::json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      list.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else if (merge.is_string() && merge.get<std::string>().find(' ') != std::string::npos) {
      const std::string pair = merge.get<std::string>();
      list.emplace_back(pair.substr(0, pair.find(' ')), pair.substr(pair.find(' ') + 1));
    } else {
      refuse();
    }
  }
  return list;
}

Prefix read_prefix(const std::string& path, const Tokenizer& tokenizer) {
  nlohmann::json config = nlohmann::json::object();
  if (is_there(path)) config = parse_json(read_text_file(path), path);
  if (!config.is_object()) throw InputError(text(path, ": must be a JSON object"));
  if (!tokenizer.add_dummy_prefix() || config.value("add_prefix_space", nlohmann::json()) == false)
    return Prefix::never;
  return config.value("legacy", nlohmann::json()) == true ? Prefix::always : Prefix::first;
}

/// The tokens at which a text is divided. SentencePiece itself handles the user-defined pieces of its own model.
std::vector<AddedToken> found_tokens(const Tokenizer& tokenizer) {
  std::vector<AddedToken> tokens = tokenizer.added_tokens();
  if (!tokenizer.beside_merges()) return tokens;
  std::erase_if(tokens, [&](const AddedToken& token) {
    return token.id < tokenizer.model_size() && tokenizer.type(token.id) == TokenType::user_defined;
  });
  return tokens;
}

}  // namespace

struct ChatTokenizer::State {
  PieceIds pieces;
  std::array<std::int32_t, 256> bytes{};                      // ids of the pieces <0x00> to <0xFF>; -1: none
  std::map<std::string, std::int32_t, std::less<>> specials;  // tokens that stand for themselves
  AddedTokenFinder finder;
  std::int32_t unknown = 0;
  Prefix prefix = Prefix::first;
  MergeTable merges;
  // If there is one of these, the members above are unused.
  std::shared_ptr<const TextPipeline> pipeline;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor;  // for a model that does more than merge
  std::string path;                                                        // of that model

  explicit State(const Tokenizer& tokenizer) : finder(found_tokens(tokenizer)) {}
  void add_part(std::string_view text, std::size_t begin, std::size_t end, TokenizedText& out) const;
  void add_character(std::string_view character, TextSpan span, std::vector<Symbol>& symbols) const;
};

// A character that is not a piece becomes its bytes. If the vocabulary lacks those, a run of such characters becomes
// one unknown token.
void ChatTokenizer::State::add_character(std::string_view character, TextSpan span,
                                         std::vector<Symbol>& symbols) const {
  const auto add = [&](std::int32_t id, TextSpan where) {
    const int place = static_cast<int>(symbols.size());
    if (place > 0) symbols.back().next = place;
    symbols.push_back({id, place - 1, -1, where});
  };
  if (const auto piece = pieces.find(character); piece != pieces.end()) return add(piece->second, span);
  const bool known = std::all_of(character.begin(), character.end(),
                                 [&](char c) { return bytes[static_cast<unsigned char>(c)] >= 0; });
  if (!known) {
    if (!symbols.empty() && symbols.back().id == unknown)
      symbols.back().span.end = span.end;
    else
      add(unknown, span);
    return;
  }
  for (std::size_t i = 0; i < character.size(); ++i)
    add(bytes[static_cast<unsigned char>(character[i])], {span.begin + i, span.begin + i + 1});
}

void ChatTokenizer::State::add_part(std::string_view text, std::size_t begin, std::size_t end,
                                    TokenizedText& out) const {
  if (begin == end) return;
  if (processor) return add_located(*processor, path, text, {begin, end}, out.ids, out.spans);
  std::vector<Symbol> symbols;
  const std::string_view part = text.substr(begin, end - begin);
  const bool marked = part.starts_with(' ') || part.starts_with(space_mark);
  if (!marked && (prefix == Prefix::always || (prefix == Prefix::first && begin == 0)))
    add_character(space_mark, {begin, begin}, symbols);
  for (std::size_t i = begin; i < end;) {
    std::size_t next = i + 1;
    while (next < end && utf8_continues(text[next])) ++next;
    add_character(text[i] == ' ' ? space_mark : text.substr(i, next - i), {i, next}, symbols);
    i = next;
  }
  merge_all(symbols, merges);
  for (const Symbol& symbol : symbols) {
    if (symbol.merged) continue;
    out.ids.push_back(symbol.id);
    out.spans.push_back(symbol.span);
  }
}

ChatTokenizer::ChatTokenizer(const Tokenizer& tokenizer, const std::string& directory) {
  auto state = std::make_unique<State>(tokenizer);
  for (const AddedToken& token : tokenizer.added_tokens())
    state->specials.emplace(token.content, static_cast<std::int32_t>(token.id));
  if ((state->pipeline = tokenizer.pipeline())) {
    state_ = std::move(state);
    return;
  }
  if (tokenizer.beside_merges()) {
    state->processor = tokenizer.sentencepiece();
    state->path = tokenizer.model_path();
    state_ = std::move(state);
    return;
  }
  state->bytes.fill(-1);
  for (std::int64_t id = 0; id < tokenizer.model_size(); ++id) {
    const std::string& piece = tokenizer.piece(id);
    const auto number = static_cast<std::int32_t>(id);
    if (tokenizer.type(id) == TokenType::byte)
      state->bytes[static_cast<std::size_t>(std::stoi(piece.substr(3, 2), nullptr, 16))] = number;
    state->pieces.emplace(piece, number);
  }
  state->unknown = tokenizer.unk().value_or(0);
  state->prefix = read_prefix(std::filesystem::path(directory) / "tokenizer_config.json", tokenizer);
  const std::string list = std::filesystem::path(tokenizer.model_path()).parent_path() / "tokenizer.json";
  state->merges = is_there(list) ? MergeTable::of_list(read_merges(list), state->pieces, list)
                                 : MergeTable::of_pieces(state->pieces);
  state_ = std::move(state);
}

ChatTokenizer::ChatTokenizer(ChatTokenizer&&) noexcept = default;
ChatTokenizer::~ChatTokenizer() = default;

TokenizedText ChatTokenizer::encode(std::string_view content) const {
  if (content.size() > (std::size_t{1} << 31) - 2)
    throw InputError("a conversation of 2 GiB or more cannot be encoded as one text");
  if (state_->pipeline) {
    LocatedIds located = state_->pipeline->locate(content);
    return {std::move(located.ids), std::move(located.bytes)};
  }
  TokenizedText out;
  for (const TextPart& part : state_->finder.split(content)) {
    if (part.id < 0) {
      state_->add_part(content, part.span.begin, part.span.end, out);
      continue;
    }
    out.ids.push_back(part.id);
    out.spans.push_back(part.span);
  }
  return out;
}

std::optional<std::int32_t> ChatTokenizer::special(std::string_view text) const {
  const auto found = state_->specials.find(text);
  return found == state_->specials.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace zero
