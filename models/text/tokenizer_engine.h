#pragma once
// TokenizerEngine: the implementation behind a Tokenizer, either SentencePiece (sentencepiece_engine.cpp) or a
// tokenizer.json (pipeline_engine.cpp). Does not include LibTorch.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer.h"

namespace zero {

/// Facts about a tokenizer that do not depend on the text.
struct TokenizerFacts {
  std::string path;  // of the file with the vocabulary
  std::uint64_t hash = 0;
  std::int64_t vocab_size = 0, model_size = 0;
  std::vector<AddedToken> added;
  std::optional<std::int32_t> bos, eos, unk;
  std::vector<std::int32_t> opening, closing;
  bool dummy_prefix = false;
  const char* beside_merges = nullptr;

  /// Adds the added tokens to the hash.
  void hash_added();
};

/// Turns ids into text one by one.
class IdStream {
 public:
  virtual ~IdStream() = default;
  virtual std::string next(std::int32_t id) = 0;
  virtual std::string finish() = 0;
};

/// Every function means the same as in Tokenizer. Ids must be inside the vocabulary.
class TokenizerEngine {
 public:
  virtual ~TokenizerEngine() = default;
  const TokenizerFacts& facts() const { return facts_; }

  virtual std::vector<std::int32_t> encode(std::string_view text, bool inside) const = 0;
  virtual std::string decode(const std::vector<std::int32_t>& ids) const = 0;
  virtual std::unique_ptr<IdStream> stream(bool at_start) const = 0;
  virtual std::size_t next_cut(std::string_view text, std::size_t from) const = 0;
  virtual const std::string& piece(std::int64_t id) const = 0;
  virtual std::optional<std::int32_t> id_of(std::string_view piece) const = 0;
  virtual float score(std::int64_t id) const = 0;
  virtual TokenType type(std::int64_t id) const = 0;
  virtual std::shared_ptr<const TextPipeline> pipeline() const { return nullptr; }
  virtual std::shared_ptr<const sentencepiece::SentencePieceProcessor> sentencepiece() const { return nullptr; }

 protected:
  TokenizerFacts facts_;
};

/// `path` is a tokenizer.model, or a folder with one.
std::unique_ptr<const TokenizerEngine> make_sentencepiece_engine(const std::string& path);
/// Makes the engine for a folder's tokenizer.json.
std::unique_ptr<const TokenizerEngine> make_pipeline_engine(const std::string& folder);

}  // namespace zero
