#pragma once
// Tokenizer: converts text to ids and back, with a tokenizer.json (models/text/pipeline) or a SentencePiece model, and
// the folder's added tokens. If a text spells out a special token, SentencePiece treats it as text, but a
// tokenizer.json treats it as a token, like Hugging Face's library. ChatTokenizer, which encodes prompts and
// conversations, always treats it as a token.
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
  bool bos = false;     // prepend opening()
  bool eos = false;     // append closing()
  bool inside = false;  // the text continues another one that was cut at next_cut(): nothing is prepended
};

enum class TokenType { normal, unknown, control, user_defined, unused, byte };

class Tokenizer {
 public:
  /// `path` is a tokenizer.json or a SentencePiece model, or a folder with one. Other files of its folder
  /// (models/text/added_tokens.h) add tokens and name BOS and EOS. If a folder has both, the tokenizer.json is used, as
  /// in transformers' AutoTokenizer. The exception is a tokenizer_config.json that names LlamaTokenizer or no class,
  /// since LlamaTokenizer ignores tokenizer.json. Throws InputError if files are missing or broken, or do not match the
  /// model.
  static Tokenizer load(const std::string& path);
  /// Loads a folder's SentencePiece model and ignores tokenizer.json.
  static Tokenizer load_sentencepiece(const std::string& path);
  /// The SentencePiece model in a folder: tokenizer.model, or otherwise spiece.model, its name in T5 and ALBERT. Empty
  /// if there is none.
  static std::string sentencepiece_in(const std::string& folder);
  /// lies_at() is true if load() finds a tokenizer there. is_json() is true if that is a tokenizer.json.
  static bool lies_at(const std::string& path);
  static bool is_json(const std::string& path);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Encodes the whole text, including newlines. Invalid UTF-8 becomes U+FFFD. Texts may have many megabytes:
  /// SentencePiece receives a long text in parts. Cuts are only between two characters that are not adjacent in any
  /// piece of the vocabulary. No BPE merge can cross such a cut, so the ids are those of the whole text. Thread-safe.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// Special tokens decode to nothing, other added tokens to their text. Ids beyond the vocabulary decode to nothing,
  /// as in transformers: many models have more rows than tokens and may generate such an id. Throws InputError for an
  /// id below 0.
  std::string decode(const std::vector<std::int32_t>& ids) const;

  std::int64_t vocab_size() const;                  // including added tokens
  std::int64_t model_size() const;                  // without added tokens; ids below this are the model's pieces
  const std::string& piece(std::int64_t id) const;  // as the model stores it, with U+2581 for a space
  std::optional<std::int32_t> id_of(std::string_view piece) const;
  float score(std::int64_t id) const;
  TokenType type(std::int64_t id) const;
  std::optional<std::int32_t> bos() const;  // the folder's bos_token, otherwise the model's
  std::optional<std::int32_t> eos() const;
  /// The ids that precede a text and that follow a document. For a SentencePiece model these are BOS and EOS, or no BOS
  /// if tokenizer_config.json sets add_bos_token to false. For a tokenizer.json they come from its post-processor, and
  /// EOS is appended.
  const std::vector<std::int32_t>& opening() const;
  const std::vector<std::int32_t>& closing() const;
  std::optional<std::int32_t> unk() const;
  bool add_dummy_prefix() const;

  /// The tokens that are recognised in prompts and conversations, ordered by id: control and user-defined pieces, and
  /// the folder's added tokens.
  const std::vector<AddedToken>& added_tokens() const;

  /// Does nothing if encoding consists only of byte-pair merges over a text's characters. Otherwise throws InputError
  /// with the model's kind and the remedy. `use` names the consumer that supports only merges, such as "GGUF files".
  void require_plain_merges(std::string_view use) const;

  /// The kind of a model that does more than merge, such as "is a unigram model". Returns nullptr for a model that only
  /// merges.
  const char* beside_merges() const;

  /// Returns the first position at or after `from` where a text may be cut. The ids do not change if the second part is
  /// encoded with `inside`. Returns the text's end if there is none. For a tokenizer.json the position is found by
  /// trial, over 8 KiB on both sides.
  std::size_t next_cut(std::string_view text, std::size_t from) const;

  /// The engine of a tokenizer.json or the SentencePiece model. Each is nullptr if it is not used.
  std::shared_ptr<const TextPipeline> pipeline() const;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> sentencepiece() const;

  /// A 64-bit hash of the model file and the added tokens. Equal hashes mean equal ids for every text.
  std::uint64_t hash() const;
  const std::string& model_path() const;  // the tokenizer.json or tokenizer.model

 private:
  friend class TextStream;
  explicit Tokenizer(std::unique_ptr<const TokenizerEngine> engine);
  void require_id(std::int64_t id) const;
  bool is_token(std::int32_t id) const;

  std::unique_ptr<const TokenizerEngine> engine_;
};

/// Turns ids into text one by one. A character is held back until its last byte arrives.
class TextStream {
 public:
  /// If `at_start`, the first id begins a text, so the space that encoding prepended is dropped.
  TextStream(const Tokenizer& tokenizer, bool at_start);
  TextStream(TextStream&&) noexcept;
  ~TextStream();

  /// Throws InputError for an id outside the vocabulary.
  std::string next(std::int32_t id);
  /// Returns the bytes held back. Invalid UTF-8 becomes U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::unique_ptr<IdStream> stream_;
};

}  // namespace zero
