#include "models/text/pipeline/model/vocabulary.h"

#include "base/log.h"
#include "models/text/pipeline/component.h"

namespace zero {

Vocabulary::Vocabulary(Component& component) {
  const nlohmann::json& vocab = component.value("vocab");
  if (!vocab.is_object()) component.refuse("vocab", "must be an object: ids by pieces");
  ids_.reserve(vocab.size());
  for (const auto& [piece, id] : vocab.items()) {
    const auto place = static_cast<std::size_t>(json_index(id, "vocab", most_ids, component.place()));
    if (place >= pieces_.size()) {
      pieces_.resize(place + 1);
      known_.resize(place + 1);
    }
    if (known_[place]) component.refuse("vocab", text("gives id ", place, " to two pieces"));
    known_[place] = true;
    pieces_[place] = piece;
    ids_.emplace(piece, static_cast<std::int32_t>(place));
  }
  size_ = vocab.size();
}

Vocabulary::Vocabulary(std::vector<std::string> pieces)
    : pieces_(std::move(pieces)), known_(pieces_.size(), true), size_(pieces_.size()) {
  ids_.reserve(size_);
  for (std::size_t id = 0; id < size_; ++id) ids_[pieces_[id]] = static_cast<std::int32_t>(id);
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::piece(std::int32_t id) const {
  const auto place = static_cast<std::size_t>(id);
  return id >= 0 && place < pieces_.size() && known_[place] ? &pieces_[place] : nullptr;
}

}  // namespace zero
