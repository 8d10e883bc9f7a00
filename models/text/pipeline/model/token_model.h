#pragma once
// TokenModel: the vocabulary of a tokenizer.json and its encoding of words. Does not include LibTorch.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/merge_table.h"
#include "models/text/pipeline/model/word_cache.h"

namespace zero {

class Component;

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the tokens of a non-empty word of valid UTF-8. Thread-safe if every thread has its own cache. Throws
  /// InputError for an unknown character if the file names no unknown token.
  virtual void encode(std::string_view word, WordCache& cache, WordTokens& tokens) const = 0;

  virtual std::optional<std::int32_t> id_of(std::string_view piece) const = 0;
  virtual const std::string* piece(std::int32_t id) const = 0;  // nullptr for an unknown id
  virtual std::size_t size() const = 0;                         // pieces
  virtual std::int32_t end_of_ids() const = 0;                  // one more than the largest id
  virtual bool is_bpe() const = 0;
};

/// Makes a BPE or Unigram model. Throws InputError for any other type, for an unknown field or value, and for an
/// inconsistent vocabulary.
std::unique_ptr<const TokenModel> make_token_model(Component component);
std::unique_ptr<const TokenModel> make_bpe_model(Component& component);
std::unique_ptr<const TokenModel> make_unigram_model(Component& component);

/// "<0x0A>" for 10.
std::string byte_piece(unsigned char byte);

}  // namespace zero
