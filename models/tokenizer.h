#pragma once
// Tokenizer: text to ids and back by a SentencePiece model, with the tokens that its folder adds. Special tokens written
// out in a text are text to it: prompts and conversations go through ChatTokenizer.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct EncodeOptions {
  bool bos = false;
  bool eos = false;
};

enum class TokenType { normal, unknown, control, user_defined, unused, byte };

class Tokenizer {
 public:
  /// `path` is a tokenizer.model, or a folder that holds one and perhaps tokenizer_config.json or added_tokens.json with
  /// further tokens. InputError names what is missing or broken.
  static Tokenizer load(const std::string& path);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Thread-safe. The text is taken as a whole, newlines kept; what is no UTF-8 becomes U+FFFD. Megabytes are no burden: a
  /// long text is cut, but only between two characters that no piece of the vocabulary holds side by side, where no merge
  /// of BPE can ever cross, so the ids are those of the whole.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// Control tokens give nothing. InputError for an id outside the vocabulary.
  std::string decode(const std::vector<std::int32_t>& ids) const;

  std::int64_t vocab_size() const;                                 // added tokens counted
  const std::string& piece(std::int64_t id) const;                 // as the model writes it, with U+2581 for a space
  std::optional<std::int32_t> id_of(std::string_view piece) const;
  float score(std::int64_t id) const;
  TokenType type(std::int64_t id) const;
  std::optional<std::int32_t> bos() const;
  std::optional<std::int32_t> eos() const;
  std::optional<std::int32_t> unk() const;
  bool add_dummy_prefix() const;

  /// No piece holds a newline beside another character and nothing else looks across one: ids of a text that is cut before
  /// a newline are those of the whole, but for the dummy prefix of the second part.
  bool newline_stands_alone() const;

  /// 64 bits over the model file and the added tokens: the same ids for every text where it is the same.
  std::uint64_t hash() const;
  const std::string& model_path() const;                            // of tokenizer.model

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Turns ids into text as they come, holding back a character until its last byte is there.
class TextStream {
 public:
  /// at_start: the first id begins a text, so the space that encoding put in front of it is dropped.
  TextStream(const Tokenizer& tokenizer, bool at_start) : tokenizer_(tokenizer), at_start_(at_start && tokenizer.add_dummy_prefix()) {}

  std::string next(std::int32_t id);
  /// What was held back; bytes that make no character become U+FFFD.
  std::string finish();

 private:
  std::string complete(bool all);
  const Tokenizer& tokenizer_;
  bool at_start_;
  std::string held_;
};

}  // namespace zero
