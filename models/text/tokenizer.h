#pragma once
// Tokenizer: text to ids and back, by a tokenizer.json (models/text/pipeline) or a SentencePiece model, with the
// folder's added tokens. A special token spelled out in a text is text to SentencePiece, and a token to a
// tokenizer.json, as in its library. Prompts and conversations go through ChatTokenizer, where it is a token in both.
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
  bool eos = false;     // closing() at the end
  bool inside = false;  // the text continues another one that was cut at next_cut(): nothing is put in front of it
};

enum class TokenType { normal, unknown, control, user_defined, unused, byte };

class Tokenizer {
 public:
  /// `path` is a tokenizer.json or a SentencePiece model, or a folder with one. Other files of its folder
  /// (models/text/added_tokens.h) add tokens and name BOS and EOS. In a folder with both the tokenizer.json counts, as
  /// in transformers' AutoTokenizer. The exception is a tokenizer_config.json that names LlamaTokenizer or no class:
  /// that class does not execute the file. Throws InputError for files that are missing, broken, or do not match the
  /// model.
  static Tokenizer load(const std::string& path);
  /// The tokenizer.model of a folder, ignoring tokenizer.json.
  static Tokenizer load_sentencepiece(const std::string& path);
  /// The SentencePiece model of a folder: tokenizer.model, else spiece.model, the name in T5 and ALBERT. Empty: none.
  static std::string sentencepiece_in(const std::string& folder);
  /// lies_at() is true if load() finds a tokenizer there. is_json() is true if that is a tokenizer.json.
  static bool lies_at(const std::string& path);
  static bool is_json(const std::string& path);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Encodes the text as a whole, newlines kept. Invalid UTF-8 becomes U+FFFD. Megabytes are fine. SentencePiece gets a
  /// long text in parts, cut only between two characters that are adjacent in no piece of the vocabulary. No merge of
  /// BPE can cross there, so the ids are those of the whole. Thread-safe.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// Special tokens decode to nothing, other added ones to their text. Ids beyond the vocabulary decode to nothing, as
  /// in transformers: many models have more rows than tokens, and may generate one. Throws InputError for an id below
  /// 0.
  std::string decode(const std::vector<std::int32_t>& ids) const;

  std::int64_t vocab_size() const;                  // including added tokens
  std::int64_t model_size() const;                  // pieces of the model alone: ids below it
  const std::string& piece(std::int64_t id) const;  // as the model writes it, with U+2581 for a space
  std::optional<std::int32_t> id_of(std::string_view piece) const;
  float score(std::int64_t id) const;
  TokenType type(std::int64_t id) const;
  std::optional<std::int32_t> bos() const;  // bos_token of the folder, else of the model
  std::optional<std::int32_t> eos() const;
  /// The ids before a text and after a document. For a SentencePiece model they are BOS and EOS, without BOS if
  /// tokenizer_config.json says add_bos_token false. For a tokenizer.json they come from its post-processor, with EOS
  /// after them.
  const std::vector<std::int32_t>& opening() const;
  const std::vector<std::int32_t>& closing() const;
  std::optional<std::int32_t> unk() const;
  bool add_dummy_prefix() const;

  /// The tokens that are recognised in prompts and conversations: control and user-defined pieces, and the folder's. By
  /// id.
  const std::vector<AddedToken>& added_tokens() const;

  /// Does nothing if encoding is only byte-pair merges over a text's characters. Otherwise throws InputError with its
  /// kind and the remedy. `use` names the consumer that supports only merges: "GGUF files".
  void require_plain_merges(std::string_view use) const;

  /// The kind of a model that does more than merge: "is a unigram model". nullptr for one that only merges.
  const char* beside_merges() const;

  /// The first place from `from` on where a text may be cut without a change of ids. The second part is encoded as
  /// `inside`. The text's end if there is none. For a tokenizer.json it is found by trial, over 8 KiB on both sides of
  /// the place.
  std::size_t next_cut(std::string_view text, std::size_t from) const;

  /// The engine of a tokenizer.json, or nullptr; the SentencePiece model, or nullptr.
  std::shared_ptr<const TextPipeline> pipeline() const;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> sentencepiece() const;

  /// 64 bits over the model file and the added tokens. Equal hashes mean equal ids for every text.
  std::uint64_t hash() const;
  const std::string& model_path() const;  // of tokenizer.json or tokenizer.model

 private:
  friend class TextStream;
  explicit Tokenizer(std::unique_ptr<const TokenizerEngine> engine);
  void require_id(std::int64_t id) const;
  bool is_token(std::int32_t id) const;

  std::unique_ptr<const TokenizerEngine> engine_;
};

/// Turns ids into text one by one. It holds a character back until its last byte arrives.
class TextStream {
 public:
  /// at_start: the first id begins a text, so the space that encoding put in front of it is dropped.
  TextStream(const Tokenizer& tokenizer, bool at_start);
  TextStream(TextStream&&) noexcept;
  ~TextStream();

  /// Throws InputError for an id outside the vocabulary.
  std::string next(std::int32_t id);
  /// The held-back bytes. Invalid ones become U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::unique_ptr<IdStream> stream_;
};

}  // namespace zero
