#pragma once
// MergeTable: the pairs of pieces that byte-pair encoding joins, each with its rank. No LibTorch.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zero {

struct Merge {
  std::uint64_t rank = 0;  // lower ones go first
  std::int32_t id = 0;     // of the joined piece
};

/// Pieces by their text.
struct PieceHash : std::hash<std::string_view> {
  using is_transparent = void;
};
using PieceIds = std::unordered_map<std::string, std::int32_t, PieceHash, std::equal_to<>>;

class MergeTable {
 public:
  /// Every pair of pieces whose concatenation is a piece, ranked by (id of that, length of the left part).
  static MergeTable of_pieces(const PieceIds& pieces);

  /// A list of pairs in the order of their ranks. Throws InputError, with `path`, if a pair or its result is not a
  /// piece.
  static MergeTable of_list(const std::vector<std::pair<std::string, std::string>>& list, const PieceIds& pieces,
                            const std::string& path);

  const Merge* find(std::int32_t left, std::int32_t right) const {
    const auto found = merges_.find(key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

 private:
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace zero
