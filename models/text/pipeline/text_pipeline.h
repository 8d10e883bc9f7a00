#pragma once
// TextPipeline: converts text to ids and back as a tokenizer.json says. The steps are added tokens, normalizer,
// pre-tokenizer, model, post-processor and decoder. They behave like Hugging Face's tokenizers 0.23 as called by
// transformers 5. There are no special cases for particular models. Does not include LibTorch.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/added_tokens.h"
#include "models/text/located_ids.h"

namespace zero {

class TextPipeline {
 public:
  /// Reads tokenizer.json. If the folder has a tokenizer_config.json, it also reads its special tokens by name (and
  /// adds those that tokenizer.json lacks), split_special_tokens and clean_up_tokenization_spaces. Throws InputError
  /// with the file and what is wrong, or with the unknown part that could change ids.
  static TextPipeline load(const std::filesystem::path& folder);
  TextPipeline(TextPipeline&&) noexcept;
  TextPipeline& operator=(TextPipeline&&) noexcept;
  ~TextPipeline();

  /// Encodes valid UTF-8. `special` adds the post-processor's tokens around the text. Added tokens in the text are
  /// recognised. Thread-safe.
  std::vector<std::int32_t> encode(std::string_view text, bool special) const;

  /// Returns the model's ids for a text, without the post-processor. `inside` says that the text continues another one
  /// that was cut at next_cut(). Thread-safe.
  std::vector<std::int32_t> encode_part(std::string_view text, bool inside) const;

  /// Applies the post-processor to the ids of a text: encode() is surrounded(encode_part()).
  std::vector<std::int32_t> surrounded(std::vector<std::int32_t> ids, bool special) const;

  /// Returns the first position at or after `from`, between a word and white space, where a text can be cut. A cut must
  /// not change the ids around it. This is tried with a few hundred bytes on both sides, and then with 8 KiB. Returns
  /// the text's end if there is no such position.
  std::size_t next_cut(std::string_view text, std::size_t from) const;

  /// Returns the ids of encode() without special tokens, and their positions in the text. Thread-safe.
  LocatedIds locate(std::string_view text) const;

  /// Decodes ids. An unknown id decodes to nothing. If `skip_special` is set, so do special tokens. Invalid UTF-8
  /// becomes U+FFFD. Thread-safe.
  std::string decode(const std::vector<std::int32_t>& ids, bool skip_special) const;

  std::int64_t vocab_size() const;                    // one more than the largest id
  const std::string* written(std::int32_t id) const;  // the token's text; nullptr for an unknown id
  const std::vector<std::int32_t>& opening() const;   // the post-processor's ids before a text
  const std::vector<std::int32_t>& closing() const;   // the post-processor's ids after a text
  std::optional<std::int32_t> id_of(std::string_view token) const;
  const std::vector<AddedToken>& added_tokens() const;  // ordered by id
  std::optional<std::int32_t> bos() const;              // of tokenizer_config.json
  std::optional<std::int32_t> eos() const;
  /// The text of BOS or EOS if only tokenizer_config.json names it and it has no id. transformers then invents an id.
  const std::optional<std::string>& invented_mark() const;

  /// A 64-bit hash of tokenizer.json and split_special_tokens.
  std::uint64_t hash() const;

 private:
  struct State;
  explicit TextPipeline(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace zero
