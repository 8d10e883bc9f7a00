#include "models/text/pipeline/text_pipeline.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/pipeline/added_vocabulary.h"
#include "models/text/pipeline/component.h"
#include "models/text/pipeline/model/token_model.h"
#include "models/text/pipeline/normalizer.h"
#include "models/text/pipeline/post_processor.h"
#include "models/text/pipeline/pre_tokenizer.h"
#include "models/text/pipeline/token_decoder.h"

namespace zero {
namespace {

constexpr JsonLimits file_limits{.bytes = 256 << 20};

/// Word caches, one for each thread that is encoding.
class Caches {
 public:
  std::unique_ptr<WordCache> take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return std::make_unique<WordCache>();
    auto cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }
  void give_back(std::unique_ptr<WordCache> cache) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(cache));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

/// Does the work of transformers' clean_up_tokenization.
void clean_up(std::string& text) {
  for (const char* what : {" .", " ?", " !", " ,"}) replace_all(text, what, what + 1);
  replace_all(text, " ' ", "'");
  for (const char* what : {" n't", " 'm", " 's", " 've", " 're"}) replace_all(text, what, what + 1);
}

/// Returns the position of a part's token in the original text.
TextSpan origin_of(const Splits& splits, const Split& part, const WordToken& token) {
  const std::size_t last = part.end - 1, begin = std::min(part.begin + token.begin, last),
                    end = std::clamp(part.begin + token.end, begin + 1, part.end);
  return {splits.origins[begin].begin, splits.origins[end - 1].end};
}

/// The number of bytes at the end of a text that begin a character but do not complete it.
std::size_t cut_character(std::string_view text) {
  std::size_t held = 0;
  while (held < text.size() && utf8_continues(text[text.size() - 1 - held])) ++held;
  if (held == text.size()) return 0;
  return utf8_length(static_cast<unsigned char>(text[text.size() - 1 - held])) > held + 1 ? held + 1 : 0;
}

/// Converts byte spans, which cover whole characters, to spans of code points.
std::vector<TextSpan> in_characters(std::string_view text, std::vector<TextSpan> spans) {
  std::vector<std::uint32_t> before(text.size() + 1);  // characters that begin before a byte
  for (std::size_t at = 0; at < text.size(); ++at) before[at + 1] = before[at] + (utf8_continues(text[at]) ? 0 : 1);
  for (TextSpan& span : spans) span = {before[span.begin], before[span.end]};
  return spans;
}

std::vector<AddedToken> listed_tokens(Component& file) {
  std::vector<AddedToken> tokens;
  if (!file.has("added_tokens")) {
    file.pass_over("added_tokens");
    return tokens;
  }
  for (Component& token : file.list("added_tokens")) {
    AddedToken& added = tokens.emplace_back();
    added.id = token.get<std::int64_t>("id");
    added.content = token.get<std::string>("content");
    added.special = token.get<bool>("special", false);
    added.normalized = token.get<bool>("normalized", !added.special);
    added.lstrip = token.get<bool>("lstrip", false);
    added.rstrip = token.get<bool>("rstrip", false);
    added.single_word = token.get<bool>("single_word", false);
    token.finish();
  }
  return tokens;
}

}  // namespace

struct TextPipeline::State {
  explicit State(const std::filesystem::path& folder);

  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<const PreTokenizer> pre_tokenizer;
  std::unique_ptr<const TokenModel> model;
  std::optional<AddedVocabulary> added;
  PostProcessor post_processor;
  std::unique_ptr<const TokenDecoder> decoder;
  std::optional<std::int32_t> bos, eos;
  std::optional<std::string> invented_mark;
  std::uint64_t hash = 0;
  bool cleans_up = false;
  mutable Caches caches;

  std::vector<std::int32_t> opening, closing;

  Splits split(std::string_view text, bool aligned, bool continued) const;
  bool can_cut(std::string_view text, std::size_t at, std::size_t reach) const;
  std::vector<std::int32_t> encode(std::string_view text, bool continued) const;

 private:
  void read(const std::string& path);
  void read_config(const std::filesystem::path& folder);
};

void TextPipeline::State::read(const std::string& path) {
  const std::string source = read_text_file(path, file_limits.bytes);
  hash = fnv1a(source);
  const nlohmann::json content = parse_json(source, path, file_limits);
  Component file(content, path, "the file");
  if (file.get<std::string>("version", "1.0") != "1.0") file.refuse("version", "must be 1.0");
  // transformers sets both again for every text
  for (const char* key : {"truncation", "padding"}) file.pass_over(key);
  const auto part = [&](const char* key) { return Component(file.value(key), path, key); };
  if (file.has("normalizer")) normalizer = make_normalizer(part("normalizer"));
  if (file.has("pre_tokenizer")) pre_tokenizer = make_pre_tokenizer(part("pre_tokenizer"));
  if (file.has("post_processor")) post_processor = PostProcessor(part("post_processor"));
  if (file.has("decoder")) decoder = make_token_decoder(part("decoder"));
  for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) file.pass_over(key);
  model = make_token_model(part("model"));
  added.emplace(*model, normalizer.get());
  added->add(listed_tokens(file));
  file.finish();
}

void TextPipeline::State::read_config(const std::filesystem::path& folder) {
  const std::string path = folder / "tokenizer_config.json";
  const nlohmann::json config = read_json_object(path);
  const TokenizerFolder told = read_tokenizer_folder(folder);
  std::vector<AddedToken> tokens = told.tokens;
  for (const AddedToken& token : told.named) {
    const auto same = [&](const AddedToken& other) { return other.content == token.content; };
    const bool listed =
        std::any_of(tokens.begin(), tokens.end(), same) || std::any_of(told.tokens.begin(), told.tokens.end(), same);
    if (!listed) tokens.push_back(token);
  }
  for (const std::optional<std::string>& mark : {told.eos, told.bos}) {
    const bool has_id = std::any_of(told.tokens.begin(), told.tokens.end(),
                                    [&](const AddedToken& token) { return token.content == mark; });
    if (mark && !mark->empty() && !has_id && !added->id_of(*mark)) invented_mark = mark;
  }
  added->add(tokens);
  const bool splits_special = json_value<bool>(config, "split_special_tokens", false, path);
  if (splits_special) hash = fnv1a("split_special_tokens", hash);
  added->finish(splits_special);
  const auto id = [&](const std::optional<std::string>& token) {
    return token && !token->empty() ? added->id_of(*token) : std::nullopt;
  };
  bos = id(told.bos);
  eos = id(told.eos);
  const bool even_bpe =
      json_value<bool>(config, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", false, path);
  cleans_up = json_value<bool>(config, "clean_up_tokenization_spaces", false, path) && (!model->is_bpe() || even_bpe);
}

TextPipeline::State::State(const std::filesystem::path& folder) {
  read(folder / "tokenizer.json");
  read_config(folder);
  constexpr std::int32_t stand_in = -1;
  const std::vector<std::int32_t> around = post_processor.apply({stand_in}, true);
  const auto place = std::find(around.begin(), around.end(), stand_in);
  if (place == around.end()) return;
  opening.assign(around.begin(), place);
  closing.assign(place + 1, around.end());
}

TextPipeline::TextPipeline(std::unique_ptr<const State> state) : state_(std::move(state)) {}
TextPipeline::TextPipeline(TextPipeline&&) noexcept = default;
TextPipeline& TextPipeline::operator=(TextPipeline&&) noexcept = default;
TextPipeline::~TextPipeline() = default;

TextPipeline TextPipeline::load(const std::filesystem::path& folder) {
  return TextPipeline(std::make_unique<const State>(folder));
}

Splits TextPipeline::State::split(std::string_view text, bool aligned, bool continued) const {
  if (text.size() > std::numeric_limits<std::int32_t>::max() / 2)
    throw InputError("a text of 1 GiB or more cannot be encoded at once; cut it");
  Splits splits = added->split(text, aligned, continued);
  if (pre_tokenizer) pre_tokenizer->apply(splits);
  return splits;
}

std::vector<std::int32_t> TextPipeline::State::encode(std::string_view text, bool continued) const {
  const Splits splits = split(text, false, continued);
  std::vector<std::int32_t> ids;
  ids.reserve(splits.parts.size() + splits.text.size() / 4);
  WordTokens tokens;
  auto cache = caches.take();
  for (const Split& part : splits.parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    tokens.clear();
    model->encode(splits.of(part), *cache, tokens);
    for (const WordToken& token : tokens) ids.push_back(token.id);
  }
  caches.give_back(std::move(cache));
  return ids;
}

std::vector<std::int32_t> TextPipeline::encode(std::string_view text, bool special) const {
  return surrounded(state_->encode(text, false), special);
}

std::vector<std::int32_t> TextPipeline::surrounded(std::vector<std::int32_t> ids, bool special) const {
  return state_->post_processor.apply(std::move(ids), special);
}

std::vector<std::int32_t> TextPipeline::encode_part(std::string_view text, bool inside) const {
  return state_->encode(text, inside);
}

/// True if a cut does not change the ids of characters up to `reach` bytes away.
bool TextPipeline::State::can_cut(std::string_view text, std::size_t at, std::size_t reach) const {
  std::size_t begin = at - std::min(at, reach), end = std::min(text.size(), at + reach);
  while (begin < at && utf8_continues(text[begin])) ++begin;
  while (end > at && end < text.size() && utf8_continues(text[end])) --end;
  if (end == text.size()) end -= cut_character(text.substr(at));
  const std::string_view around = text.substr(begin, end - begin);
  if (to_utf8(around) != around) return true;  // no text: refused elsewhere
  std::vector<std::int32_t> parts = encode(text.substr(begin, at - begin), begin > 0);
  const std::vector<std::int32_t> rest = encode(text.substr(at, end - at), true);
  parts.insert(parts.end(), rest.begin(), rest.end());
  return parts == encode(around, begin > 0);
}

std::size_t TextPipeline::next_cut(std::string_view text, std::size_t from) const {
  constexpr std::size_t near = 256, far = 8192;
  constexpr int most_trials = 64;
  int trials = 0;
  for (std::size_t at = std::max<std::size_t>(from, 1); at < text.size() && trials < most_trials; ++at) {
    const bool space = text[at] == ' ' || text[at] == '\n';
    const auto before = static_cast<unsigned char>(text[at - 1]);
    if (!space || (before < 0x80 && !std::isalnum(before))) continue;  // a letter of any script
    if (state_->can_cut(text, at, near) && state_->can_cut(text, at, far)) return at;
    ++trials;
  }
  return text.size();
}

LocatedIds TextPipeline::locate(std::string_view text) const {
  const Splits splits = state_->split(text, true, false);
  LocatedIds located;
  std::vector<std::string_view> written;
  const auto add = [&](std::int32_t id, TextSpan span, std::string_view content) {
    located.ids.push_back(id);
    located.bytes.push_back(span);
    written.push_back(content);
  };
  WordTokens tokens;
  auto cache = state_->caches.take();
  auto added = splits.added.begin();
  for (const Split& part : splits.parts) {
    if (part.id >= 0) {
      add(part.id, *added, text.substr(added->begin, added->end - added->begin));
      ++added;
      continue;
    }
    tokens.clear();
    state_->model->encode(splits.of(part), *cache, tokens);
    for (const WordToken& token : tokens)
      add(token.id, origin_of(splits, part, token), *state_->model->piece(token.id));
  }
  state_->caches.give_back(std::move(cache));
  located.characters = in_characters(text, located.bytes);
  state_->post_processor.trim(written, located.characters);
  return located;
}

std::string TextPipeline::decode(const std::vector<std::int32_t>& ids, bool skip_special) const {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const std::string* written = state_->added->written(id);
    if (written && !(skip_special && state_->added->is_special(*written))) pieces.push_back(*written);
  }
  if (state_->decoder) state_->decoder->apply(pieces);
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) text.append(i > 0 && !state_->decoder ? " " : "").append(pieces[i]);
  if (state_->cleans_up) clean_up(text);
  return text;
}

std::int64_t TextPipeline::vocab_size() const {
  const std::vector<AddedToken>& tokens = added_tokens();
  return std::max<std::int64_t>(state_->model->end_of_ids(), tokens.empty() ? 0 : tokens.back().id + 1);
}

const std::string* TextPipeline::written(std::int32_t id) const { return state_->added->written(id); }
const std::vector<std::int32_t>& TextPipeline::opening() const { return state_->opening; }
const std::vector<std::int32_t>& TextPipeline::closing() const { return state_->closing; }
std::optional<std::int32_t> TextPipeline::id_of(std::string_view token) const { return state_->added->id_of(token); }
const std::vector<AddedToken>& TextPipeline::added_tokens() const { return state_->added->tokens(); }
std::optional<std::int32_t> TextPipeline::bos() const { return state_->bos; }
std::optional<std::int32_t> TextPipeline::eos() const { return state_->eos; }
const std::optional<std::string>& TextPipeline::invented_mark() const { return state_->invented_mark; }
std::uint64_t TextPipeline::hash() const { return state_->hash; }

}  // namespace zero
