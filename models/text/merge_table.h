#pragma once
// MergeTable: the pairs of pieces that byte-pair encoding joins, each with its rank. Does not include LibTorch.
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
  std::uint64_t rank = 0;  // lower ranks merge first
  std::int32_t id = 0;     // of the joined piece
};

/// Pieces by their text.
struct PieceHash : std::hash<std::string_view> {
  using is_transparent = void;
};
using PieceIds = std::unordered_map<std::string, std::int32_t, PieceHash, std::equal_to<>>;

class MergeTable {
 public:
  /// Takes every pair of pieces whose concatenation is a piece. Pairs are ranked by the id of that piece, then by the
  /// length of the left part.
  static MergeTable of_pieces(const PieceIds& pieces);

  /// Takes a list of pairs in the order of their ranks. If a member of a pair or its result is not a piece, throws
  /// InputError with `path`.
  static MergeTable of_list(const std::vector<std::pair<std::string, std::string>>& list, const PieceIds& pieces,
                            const std::string& path);

  const Merge* find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[place_of(key(left, right))];
    return slot.pair == none ? nullptr : &slot.merge;
  }

 private:
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  /// The number of slots is a power of two, and at most half are full. A pair is in the first slot that was free,
  /// starting at its hash.
  struct Slot {
    std::uint64_t pair = none;
    Merge merge;
  };
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  std::size_t place_of(std::uint64_t pair) const {
    std::size_t place = pair * 0x9E3779B97F4A7C15u >> 32 & (slots_.size() - 1);
    while (slots_[place].pair != pair && slots_[place].pair != none) place = (place + 1) & (slots_.size() - 1);
    return place;
  }
  void set(std::uint64_t pair, Merge merge);

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::size_t count_ = 0;
};

}  // namespace zero
