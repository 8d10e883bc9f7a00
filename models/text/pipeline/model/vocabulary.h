#pragma once
// Vocabulary: the pieces of a model, by text and by id. Does not include LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/merge_table.h"

namespace zero {

class Component;

class Vocabulary {
 public:
  static constexpr std::int64_t most_ids = 1 << 22;  // bounds the memory of gaps

  /// Reads a model's "vocab" object, which maps pieces to ids. Throws InputError if an id is not a small non-negative
  /// integer, or if two pieces have the same id.
  explicit Vocabulary(Component& component);
  /// Takes pieces whose ids are their indices. If two pieces are equal, the text maps to the last one.
  explicit Vocabulary(std::vector<std::string> pieces);

  std::optional<std::int32_t> id_of(std::string_view piece) const;
  const std::string* piece(std::int32_t id) const;  // nullptr for an unknown id
  std::size_t size() const { return size_; }
  std::int32_t end_of_ids() const { return static_cast<std::int32_t>(pieces_.size()); }

 private:
  PieceIds ids_;
  std::vector<std::string> pieces_;
  std::vector<bool> known_;
  std::size_t size_ = 0;
};

}  // namespace zero
