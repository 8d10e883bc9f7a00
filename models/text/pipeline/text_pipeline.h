#pragma once
// TextPipeline: text to ids and back by a tokenizer.json, step by step: added tokens, normalizer, pre-tokenizer, model,
// post-processor, decoder. The rules are those of Hugging Face's tokenizers 0.23 as transformers 5 calls them. No model
// is recognised by its name. No LibTorch.
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
  /// with the file and the fault, or the unknown part that would change ids.
  static TextPipeline load(const std::filesystem::path& folder);
  TextPipeline(TextPipeline&&) noexcept;
  TextPipeline& operator=(TextPipeline&&) noexcept;
  ~TextPipeline();

  /// Encodes valid UTF-8. `special` adds the post-processor's tokens around the text. Added tokens in the text are
  /// recognised. Thread-safe.
  std::vector<std::int32_t> encode(std::string_view text, bool special) const;

  /// The model's ids of a text, before the post-processor. `inside`: the text continues another one that was cut at
  /// next_cut(). Thread-safe.
  std::vector<std::int32_t> encode_part(std::string_view text, bool inside) const;

  /// The post-processor's result for the ids of a text: encode() is surrounded(encode_part()).
  std::vector<std::int32_t> surrounded(std::vector<std::int32_t> ids, bool special) const;

  /// The first place from `from` on, between a word and white space, where a text can be cut. The ids around it, of
  /// some hundred bytes and then of 8 KiB on both sides, are the same with a cut there. The text's end if there is
  /// none.
  std::size_t next_cut(std::string_view text, std::size_t from) const;

  /// The ids of encode() without special tokens, and their places in the text. Thread-safe.
  LocatedIds locate(std::string_view text) const;

  /// An unknown id decodes to nothing. With `skip_special` special tokens decode to nothing too. Invalid UTF-8 becomes
  /// U+FFFD. Thread-safe.
  std::string decode(const std::vector<std::int32_t>& ids, bool skip_special) const;

  std::int64_t vocab_size() const;                    // above the largest id
  const std::string* written(std::int32_t id) const;  // the token's text; nullptr for an unknown id
  const std::vector<std::int32_t>& opening() const;   // the post-processor's ids before a text
  const std::vector<std::int32_t>& closing() const;   // and after it
  std::optional<std::int32_t> id_of(std::string_view token) const;
  const std::vector<AddedToken>& added_tokens() const;  // by id
  std::optional<std::int32_t> bos() const;              // of tokenizer_config.json
  std::optional<std::int32_t> eos() const;
  /// The text of BOS or EOS if only tokenizer_config.json knows it, without an id. transformers then invents one.
  const std::optional<std::string>& invented_mark() const;

  /// 64 bits over tokenizer.json and split_special_tokens.
  std::uint64_t hash() const;

 private:
  struct State;
  explicit TextPipeline(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace zero
