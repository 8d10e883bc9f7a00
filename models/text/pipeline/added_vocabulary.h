#pragma once
// AddedVocabulary: the tokens added to a model's pieces, with the ids that Hugging Face's libraries assign. It also
// finds these tokens in a text. Does not include LibTorch.
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
  /// Both must outlive this object. `normalizer` may be nullptr.
  AddedVocabulary(const TokenModel& model, const Normalizer* normalizer) : model_(model), normalizer_(normalizer) {}

  /// Ignores the tokens' own `id`. A token gets the model's id if the model has the text. A repeated token keeps its id
  /// and gets the new flags. Any other token gets the next id after all others (added_vocabulary.rs).
  void add(const std::vector<AddedToken>& tokens);
  /// Call this after the last add(). If `split_special` is set, special tokens in a text count as ordinary text.
  void finish(bool split_special);

  /// Splits the text. Parts between added tokens are normalised and, if `aligned`, record where they come from.
  /// `continued` says that the text continues an earlier part of a longer text.
  Splits split(std::string_view text, bool aligned, bool continued) const;

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// The text to which the id decodes. Returns nullptr for an unknown id.
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
