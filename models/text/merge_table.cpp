#include "models/text/merge_table.h"

#include "base/error.h"
#include "base/log.h"

namespace zero {

void MergeTable::set(std::uint64_t pair, Merge merge) {
  if (2 * count_ >= slots_.size())
    for (const Slot& slot : std::exchange(slots_, std::vector<Slot>(2 * slots_.size())))
      if (slot.pair != none) slots_[place_of(slot.pair)] = slot;
  Slot& slot = slots_[place_of(pair)];
  count_ += slot.pair == none;
  slot = {pair, merge};
}

MergeTable MergeTable::of_pieces(const PieceIds& pieces) {
  MergeTable table;
  for (const auto& [piece, id] : pieces) {
    std::uint64_t characters = 0;  // of the left part
    for (std::size_t cut = 1; cut < piece.size(); ++cut) {
      if ((static_cast<unsigned char>(piece[cut]) & 0xc0) == 0x80) continue;
      ++characters;
      const auto left = pieces.find(std::string_view(piece).substr(0, cut));
      const auto right = pieces.find(std::string_view(piece).substr(cut));
      if (left == pieces.end() || right == pieces.end()) continue;
      table.set(key(left->second, right->second), {static_cast<std::uint64_t>(id) << 32 | characters, id});
    }
  }
  return table;
}

MergeTable MergeTable::of_list(const std::vector<std::pair<std::string, std::string>>& list, const PieceIds& pieces,
                               const std::string& path) {
  MergeTable table;
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto& [left, right] = list[rank];
    const auto a = pieces.find(left), b = pieces.find(right), both = pieces.find(left + right);
    if (a == pieces.end() || b == pieces.end() || both == pieces.end())
      throw InputError(text(path, ": merge ", rank, " (\"", left, "\" and \"", right,
                            "\") speaks of pieces that tokenizer.model does not have"));
    table.set(key(a->second, b->second), {rank, both->second});
  }
  return table;
}

}  // namespace zero
