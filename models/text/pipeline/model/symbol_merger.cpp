#include "models/text/pipeline/model/symbol_merger.h"

#include <algorithm>
#include <limits>

namespace zero {
namespace {

constexpr std::size_t few = 32;
constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();

RankedMerge merge_of(const RankedMerges& merges, std::int32_t left, std::int32_t right) {
  const RankedMerge* found =
      merges.find(RankedMerges::pair(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right)));
  return found ? *found : RankedMerge{no_rank, -1};
}

/// Searches for the lowest rank again after each merge, which is fastest for the few symbols of most words.
void merge_few(const RankedMerges& merges, std::vector<MergeSymbol>& symbols) {
  RankedMerge pairs[few];
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i) pairs[i] = merge_of(merges, symbols[i].id, symbols[i + 1].id);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (pairs[i].rank < pairs[best].rank) best = i;
    if (pairs[best].rank == no_rank) break;
    symbols[best] = {pairs[best].id, symbols[best].size + symbols[best + 1].size};
    --count;
    for (std::size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      if (i + 1 < count) pairs[i] = pairs[i + 1];
    }
    if (best > 0) pairs[best - 1] = merge_of(merges, symbols[best - 1].id, symbols[best].id);
    if (best + 1 < count) pairs[best] = merge_of(merges, symbols[best].id, symbols[best + 1].id);
  }
  symbols.resize(count);
}

class ManySymbols {
 public:
  ManySymbols(const RankedMerges& merges, const std::vector<MergeSymbol>& symbols) : merges_(merges) {
    symbols_.reserve(symbols.size());
    for (std::size_t i = 0; i < symbols.size(); ++i) symbols_.push_back({symbols[i].id, symbols[i].size, i - 1, i + 1});
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) add(i);
    std::make_heap(queue_.begin(), queue_.end(), later);
  }

  void merge_all() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), later);
      const Candidate top = queue_.back();
      queue_.pop_back();
      Symbol& left = symbols_[top.place];
      if (left.id < 0 || left.next >= symbols_.size()) continue;
      Symbol& right = symbols_[left.next];
      if (merge_of(merges_, left.id, right.id).id != top.id) continue;  // one of them was joined since
      left.id = top.id;
      left.size += right.size;
      right.id = -1;
      left.next = right.next;
      if (left.next < symbols_.size()) symbols_[left.next].previous = top.place;
      if (left.previous < symbols_.size()) push(left.previous);
      push(top.place);
    }
  }

  void take(std::vector<MergeSymbol>& symbols) const {
    symbols.clear();
    for (const Symbol& symbol : symbols_)
      if (symbol.id >= 0) symbols.push_back({symbol.id, symbol.size});
  }

 private:
  struct Symbol {
    std::int32_t id;  // -1: part of one to its left
    std::uint32_t size;
    std::size_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int32_t id;
    std::size_t place;
  };

  static bool later(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
  }
  bool add(std::size_t place) {
    const std::size_t next = symbols_[place].next;
    if (next >= symbols_.size()) return false;
    const RankedMerge merge = merge_of(merges_, symbols_[place].id, symbols_[next].id);
    if (merge.rank == no_rank) return false;
    queue_.push_back({merge.rank, merge.id, place});
    return true;
  }
  void push(std::size_t place) {
    if (add(place)) std::push_heap(queue_.begin(), queue_.end(), later);
  }

  const RankedMerges& merges_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;
};

}  // namespace

void merge_symbols(const RankedMerges& merges, std::vector<MergeSymbol>& symbols) {
  if (symbols.size() <= few) return merge_few(merges, symbols);
  ManySymbols many(merges, symbols);
  many.merge_all();
  many.take(symbols);
}

}  // namespace zero
