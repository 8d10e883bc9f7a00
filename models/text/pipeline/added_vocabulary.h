#pragma once
// AddedVocabulary: the tokens added to a model's pieces, with the ids that Hugging Face's libraries give them, and
// their places in a text. No LibTorch.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/added_token_finder.h"
#include "models/text/added_tokens.h"
#include "models/text/pipeline/splits.h"

namespace zero {

class Normalizer;
class TokenModel;

class AddedVocabulary {
 public:
  /// Both outlive it. `normalizer` may be nullptr.
  AddedVocabulary(const TokenModel& model, const Normalizer* normalizer) : model_(model), normalizer_(normalizer) {}

  /// Ignores the tokens' `id`. The id is the model's if it has the text, and the known one for a repeated token (whose
  /// new flags count). Otherwise it is the next free one after all (added_vocabulary.rs).
  void add(const std::vector<AddedToken>& tokens);
  /// Call it after the last add(). With `split_special` special tokens in a text count as text.
  void finish(bool split_special);

  /// The text in parts. Parts between added tokens are normalised. With `aligned` they know their place in it.
  /// `continued`: the text continues another one that was cut.
  Splits split(std::string_view text, bool aligned, bool continued) const;

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// The text for decoding. nullptr for an unknown id.
  const std::string* written(std::int32_t id) const;
  bool is_special(const std::string& written) const { return special_.contains(written); }
  const std::vector<AddedToken>& tokens() const { return tokens_; }  // by id

 private:
  std::string normalized(const std::string& content) const;

  const TokenModel& model_;
  const Normalizer* normalizer_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
  std::map<std::int32_t, AddedToken> by_id_;
  std::map<std::int32_t, std::string> written_;
  std::set<std::string> special_;
  std::vector<AddedToken> tokens_;
  std::unique_ptr<const AddedTokenFinder> as_written_, normalized_;
};

}  // namespace zero
