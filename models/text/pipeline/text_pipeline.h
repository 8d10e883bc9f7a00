#pragma once
// TextPipeline: text to ids and back as a tokenizer.json says, step by step: added tokens, normalizer, pre-tokenizer,
// model, post-processor, decoder. The rules are those of Hugging Face's tokenizers 0.23 as transformers 5 calls them; no
// model is known by its name. No LibTorch.
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
  /// Reads tokenizer.json, and of tokenizer_config.json beside it, where there is one, the special tokens by name (those
  /// that tokenizer.json lacks are added), split_special_tokens and clean_up_tokenization_spaces. InputError names the
  /// file and what is broken in it, or would change ids and is not known here.
  static TextPipeline load(const std::filesystem::path& folder);
  TextPipeline(TextPipeline&&) noexcept;
  TextPipeline& operator=(TextPipeline&&) noexcept;
  ~TextPipeline();

  /// Of valid UTF-8; `special` with the tokens that the post-processor puts around a text. Added tokens that are written
  /// out in the text are taken as such. Thread-safe.
  std::vector<std::int32_t> encode(std::string_view text, bool special) const;

  /// What the model makes of a text, before the post-processor; with `inside` of a text that goes on where another was cut at
  /// next_cut(). Thread-safe.
  std::vector<std::int32_t> encode_part(std::string_view text, bool inside) const;

  /// What the post-processor makes of the ids of a text: encode() is surrounded(encode_part()).
  std::vector<std::int32_t> surrounded(std::vector<std::int32_t> ids, bool special) const;

  /// The first place from `from` on, between a word and white space, where a text can be cut: the ids of the bytes around
  /// it, some hundreds and then 8 KiB on both sides, are the same with a cut there. The text's end when there is none.
  std::size_t next_cut(std::string_view text, std::size_t from) const;

  /// What encode() gives without special tokens, and where it stands in the text. Thread-safe.
  LocatedIds locate(std::string_view text) const;

  /// An id of no token gives nothing. With `skip_special` special tokens give nothing either. Bytes that are no UTF-8
  /// become U+FFFD. Thread-safe.
  std::string decode(const std::vector<std::int32_t>& ids, bool skip_special) const;

  std::int64_t vocab_size() const;                    // above the largest id
  const std::string* written(std::int32_t id) const;  // the token's text; nullptr for an id of none
  const std::vector<std::int32_t>& opening() const;   // what the post-processor puts in front of a text
  const std::vector<std::int32_t>& closing() const;   // and behind it
  std::optional<std::int32_t> id_of(std::string_view token) const;
  const std::vector<AddedToken>& added_tokens() const;  // by id
  std::optional<std::int32_t> bos() const;              // of tokenizer_config.json
  std::optional<std::int32_t> eos() const;
  /// The text of BOS or EOS where tokenizer_config.json alone knows it, without an id: transformers then invents one.
  const std::optional<std::string>& invented_mark() const;

  /// 64 bits over tokenizer.json and split_special_tokens.
  std::uint64_t hash() const;

 private:
  struct State;
  explicit TextPipeline(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace zero
