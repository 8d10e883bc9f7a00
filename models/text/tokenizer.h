#pragma once
// Tokenizer: text to ids and back, by a tokenizer.json (models/text/pipeline) or a SentencePiece model, with the tokens
// that the folder adds. Special tokens written out in a text are text to SentencePiece and tokens to a tokenizer.json, as
// its library has it: prompts and conversations go through ChatTokenizer, where they are tokens with both.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/added_tokens.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace zero {

class IdStream;
class TextPipeline;
class TokenizerEngine;

struct EncodeOptions {
  bool bos = false;     // opening() in front
  bool eos = false;     // closing() behind
  bool inside = false;  // the text goes on where another was cut at next_cut(): nothing is put in front of it
};

enum class TokenType { normal, unknown, control, user_defined, unused, byte };

class Tokenizer {
 public:
  /// `path` is a tokenizer.json or a SentencePiece model, or a folder that holds one. What lies beside it
  /// (models/text/added_tokens.h) adds tokens and names BOS and EOS. Of a folder with both the tokenizer.json counts, as
  /// it does for transformers' AutoTokenizer, unless tokenizer_config.json names LlamaTokenizer or no class: that class
  /// does not execute the file. InputError names what is missing or broken, or does not fit the model.
  static Tokenizer load(const std::string& path);
  /// The tokenizer.model of a folder, whatever lies beside it.
  static Tokenizer load_sentencepiece(const std::string& path);
  /// The SentencePiece model of a folder: tokenizer.model, else spiece.model, as T5 and ALBERT call it; empty: none.
  static std::string sentencepiece_in(const std::string& folder);
  /// Whether load() finds a tokenizer there, and whether that is a tokenizer.json.
  static bool lies_at(const std::string& path);
  static bool is_json(const std::string& path);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Thread-safe. The text is taken as a whole, newlines kept; what is no UTF-8 becomes U+FFFD. Megabytes are no
  /// burden: SentencePiece gets a long text in parts, cut only between two characters that no piece of the vocabulary
  /// holds side by side, where no merge of BPE can ever cross, so the ids are those of the whole.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// Special tokens give nothing, other added ones their text. Ids beyond the vocabulary give nothing, as in transformers:
  /// many models have more rows than tokens, and may come upon one. InputError for an id below 0.
  std::string decode(const std::vector<std::int32_t>& ids) const;

  std::int64_t vocab_size() const;                  // added tokens counted
  std::int64_t model_size() const;                  // pieces of the model alone: ids below it
  const std::string& piece(std::int64_t id) const;  // as the model writes it, with U+2581 for a space
  std::optional<std::int32_t> id_of(std::string_view piece) const;
  float score(std::int64_t id) const;
  TokenType type(std::int64_t id) const;
  std::optional<std::int32_t> bos() const;  // bos_token of the folder, else of the model
  std::optional<std::int32_t> eos() const;
  /// The ids that stand before a text and behind a document: BOS and EOS of a SentencePiece model, no BOS where
  /// tokenizer_config.json says add_bos_token false; with a tokenizer.json what its post-processor puts there, and EOS
  /// behind that.
  const std::vector<std::int32_t>& opening() const;
  const std::vector<std::int32_t>& closing() const;
  std::optional<std::int32_t> unk() const;
  bool add_dummy_prefix() const;

  /// The tokens that stand for themselves in prompts and conversations: control and user-defined pieces, and what the
  /// folder adds. By id.
  const std::vector<AddedToken>& added_tokens() const;

  /// Nothing, when encoding is no more than byte-pair merges over a text's characters. Else InputError with what it is
  /// and the remedy; `use` says what knows no more than merges: "GGUF files".
  void require_plain_merges(std::string_view use) const;

  /// What it does beside merges: "is a unigram model"; nullptr: nothing.
  const char* beside_merges() const;

  /// The first place from `from` on where a text may be cut so that the ids of both parts, the second one encoded as
  /// `inside`, are those of the whole; the text's end when there is none. Of a tokenizer.json it is known by trial, over 8
  /// KiB on both sides of the place.
  std::size_t next_cut(std::string_view text, std::size_t from) const;

  /// What executes the tokenizer.json; nullptr for a SentencePiece model. And the other way round.
  std::shared_ptr<const TextPipeline> pipeline() const;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> sentencepiece() const;

  /// 64 bits over the model file and the added tokens: the same ids for every text where it is the same.
  std::uint64_t hash() const;
  const std::string& model_path() const;  // of tokenizer.json or tokenizer.model

 private:
  friend class TextStream;
  explicit Tokenizer(std::unique_ptr<const TokenizerEngine> engine);
  void require_id(std::int64_t id) const;
  bool is_token(std::int32_t id) const;

  std::unique_ptr<const TokenizerEngine> engine_;
};

/// Turns ids into text as they come, holding back a character until its last byte is there.
class TextStream {
 public:
  /// at_start: the first id begins a text, so the space that encoding put in front of it is dropped.
  TextStream(const Tokenizer& tokenizer, bool at_start);
  TextStream(TextStream&&) noexcept;
  ~TextStream();

  /// InputError for an id outside the vocabulary.
  std::string next(std::int32_t id);
  /// What was held back; bytes that make no character become U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::unique_ptr<IdStream> stream_;
};

}  // namespace zero
