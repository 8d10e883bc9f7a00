#include "models/text/pipeline/added_vocabulary.h"

#include <algorithm>

#include "models/text/pipeline/model/token_model.h"
#include "models/text/pipeline/normalizer.h"

namespace zero {

void AddedVocabulary::add(const std::vector<AddedToken>& tokens) {
  const auto pieces = static_cast<std::int32_t>(model_.size());
  std::int32_t next = pieces;
  if (!by_id_.empty() && (by_id_.rbegin()->first >= pieces || pieces == 0)) next = by_id_.rbegin()->first + 1;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    const auto known = id_of(token.content);
    const std::int32_t id = known ? *known : next++;
    ids_[token.content] = id;
    AddedToken& kept = by_id_[id] = token;
    kept.id = id;
    if (token.normalized) written_[id] = normalized(token.content);
    written_.try_emplace(id, token.content);
    if (token.special) special_.insert(token.content);
  }
}

void AddedVocabulary::finish(bool split_special) {
  std::vector<AddedToken> plain, changed;
  tokens_.clear();
  for (const auto& [id, token] : by_id_) {
    tokens_.push_back(token);
    if (split_special && special_.contains(token.content)) continue;
    AddedToken found = token;
    found.normalized = false;
    if (token.normalized) found.content = written_.at(id);
    if (!found.content.empty()) (token.normalized ? changed : plain).push_back(std::move(found));
  }
  as_written_ = std::make_unique<const AddedTokenFinder>(plain);
  normalized_ = std::make_unique<const AddedTokenFinder>(changed);
}

Splits AddedVocabulary::split(std::string_view text, bool aligned, bool continued) const {
  Splits splits;
  splits.text.reserve(text.size() + text.size() / 8);
  splits.aligned = aligned;
  for (const TextPart& part : as_written_->split(text)) {
    const std::size_t offset = splits.text.size();
    if (part.id >= 0) {
      splits.parts.push_back({offset, offset, part.id, false});
      splits.added.push_back(part.taken);
      continue;
    }
    NormalizedText section;
    section.text = text.substr(part.span.begin, part.span.end - part.span.begin);
    section.first = part.span.begin == 0 && !continued;
    section.continued = part.span.begin == 0 && continued;
    if (aligned) section.align(part.span.begin);
    if (normalizer_) normalizer_->apply(section);
    for (const TextPart& inner : normalized_->split(section.text)) {
      splits.parts.push_back(
          {offset + inner.span.begin, offset + inner.span.end, inner.id, section.first && inner.span.begin == 0});
      if (inner.id >= 0 && aligned)
        splits.added.push_back({section.origins[inner.taken.begin].begin, section.origins[inner.taken.end - 1].end});
    }
    splits.text += section.text;
    splits.origins.insert(splits.origins.end(), section.origins.begin(), section.origins.end());
  }
  return splits;
}

std::optional<std::int32_t> AddedVocabulary::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? model_.id_of(token) : std::optional(found->second);
}

const std::string* AddedVocabulary::written(std::int32_t id) const {
  const auto found = written_.find(id);
  return found == written_.end() ? model_.piece(id) : &found->second;
}

std::string AddedVocabulary::normalized(const std::string& content) const {
  NormalizedText text;
  text.text = content;
  text.first = true;
  if (normalizer_) normalizer_->apply(text);
  return text.text;
}

}  // namespace zero
