#include "models/text/tokenizer.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/own_files.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/pipeline/text_pipeline.h"
#include "models/text/tokenizer_engine.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

/// The folder whose tokenizer.json is used. Empty if SentencePiece is used.
std::string pipeline_folder(const std::string& path) {
  if (!is_folder(path)) {
    if (!path.ends_with(".json")) return "";
    const std::string folder = fs::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
  }
  if (!is_there(path + "/tokenizer.json")) return "";
  if (Tokenizer::sentencepiece_in(path).empty()) return path;
  const std::string settings = path + "/tokenizer_config.json";
  const auto name = json_value<std::string>(read_json_object(settings), "tokenizer_class", "", settings);
  return name.empty() || name.starts_with("LlamaTokenizer") ? "" : path;
}

}  // namespace

void TokenizerFacts::hash_added() {
  for (const AddedToken& token : added)
    hash = fnv1a(text(token.id, token.special, token.lstrip, token.rstrip, token.single_word, token.normalized,
                      token.content, '\n'),
                 hash);
}

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerEngine> engine) : engine_(std::move(engine)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::string& path) {
  constexpr const char* names = "tokenizer.json, tokenizer.model or spiece.model";
  if (!is_there(path))
    throw InputError(text(path, ": there is no such file or folder; a tokenizer is ", names, ", or a folder with one"));
  if (!lies_at(path)) throw InputError(text(path, ": holds no tokenizer: looked for ", names));
  if (is_folder(path)) require_own_files(path);
  const std::string folder = pipeline_folder(path);
  if (!folder.empty() && !is_folder(path) && fs::path(path).filename() != "tokenizer.json")
    throw InputError(path +
                     ": a tokenizer is read from a file named tokenizer.json, with what lies beside it: put it "
                     "under that name into a folder of its own");
  return Tokenizer(folder.empty() ? make_sentencepiece_engine(path) : make_pipeline_engine(folder));
}

Tokenizer Tokenizer::load_sentencepiece(const std::string& path) { return Tokenizer(make_sentencepiece_engine(path)); }

std::string Tokenizer::sentencepiece_in(const std::string& folder) {
  for (const char* name : {"/tokenizer.model", "/spiece.model"})
    if (is_there(folder + name)) return folder + name;
  return "";
}

bool Tokenizer::lies_at(const std::string& path) {
  if (!is_folder(path)) return is_there(path);
  return !sentencepiece_in(path).empty() || is_there(path + "/tokenizer.json");
}

bool Tokenizer::is_json(const std::string& path) { return !path.empty() && !pipeline_folder(path).empty(); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view content, EncodeOptions options) const {
  std::vector<std::int32_t> ids;
  const auto add = [&](const std::vector<std::int32_t>& marks, std::optional<std::int32_t> id, const char* name) {
    if (marks.empty() && !id) throw InputError(text(model_path(), ": has no ", name, " token"));
    ids.insert(ids.end(), marks.begin(), marks.end());
  };
  if (options.bos) add(opening(), bos(), "BOS");
  const std::vector<std::int32_t> inner = engine_->encode(content, options.inside);
  ids.insert(ids.end(), inner.begin(), inner.end());
  if (options.eos) add(closing(), eos(), "EOS");
  return ids;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids) const {
  std::vector<std::int32_t> tokens;
  for (const std::int32_t id : ids)
    if (is_token(id)) tokens.push_back(id);
  return engine_->decode(tokens);
}

bool Tokenizer::is_token(std::int32_t id) const {
  if (id < 0) require_id(id);
  return id < vocab_size();
}

void Tokenizer::require_id(std::int64_t id) const {
  if (id < 0 || id >= vocab_size())
    throw InputError(text("token id ", id, " is outside the tokenizer's vocabulary of ", vocab_size()));
}

const std::string& Tokenizer::piece(std::int64_t id) const {
  require_id(id);
  return engine_->piece(id);
}

void Tokenizer::require_plain_merges(std::string_view use) const {
  if (!beside_merges()) return;
  throw InputError(
      text(model_path(), ": ", beside_merges(), "; ", use,
           " know merges alone and would give other ids than the model was trained on: they need a model made by "
           "spm_train --model_type=bpe --normalization_rule_name=identity --remove_extra_whitespaces=false"));
}

std::int64_t Tokenizer::vocab_size() const { return engine_->facts().vocab_size; }
std::int64_t Tokenizer::model_size() const { return engine_->facts().model_size; }
const char* Tokenizer::beside_merges() const { return engine_->facts().beside_merges; }
std::optional<std::int32_t> Tokenizer::id_of(std::string_view piece) const { return engine_->id_of(piece); }
float Tokenizer::score(std::int64_t id) const { return engine_->score(id); }
TokenType Tokenizer::type(std::int64_t id) const { return engine_->type(id); }
const std::vector<AddedToken>& Tokenizer::added_tokens() const { return engine_->facts().added; }
std::optional<std::int32_t> Tokenizer::bos() const { return engine_->facts().bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return engine_->facts().eos; }
std::optional<std::int32_t> Tokenizer::unk() const { return engine_->facts().unk; }
const std::vector<std::int32_t>& Tokenizer::opening() const { return engine_->facts().opening; }
const std::vector<std::int32_t>& Tokenizer::closing() const { return engine_->facts().closing; }
bool Tokenizer::add_dummy_prefix() const { return engine_->facts().dummy_prefix; }
std::size_t Tokenizer::next_cut(std::string_view text, std::size_t from) const { return engine_->next_cut(text, from); }
std::shared_ptr<const TextPipeline> Tokenizer::pipeline() const { return engine_->pipeline(); }
std::shared_ptr<const sentencepiece::SentencePieceProcessor> Tokenizer::sentencepiece() const {
  return engine_->sentencepiece();
}
std::uint64_t Tokenizer::hash() const { return engine_->facts().hash; }
const std::string& Tokenizer::model_path() const { return engine_->facts().path; }

TextStream::TextStream(const Tokenizer& tokenizer, bool at_start)
    : tokenizer_(tokenizer), stream_(tokenizer.engine_->stream(at_start)) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::string TextStream::next(std::int32_t id) { return tokenizer_.is_token(id) ? stream_->next(id) : ""; }
std::string TextStream::finish() { return stream_->finish(); }

}  // namespace zero
