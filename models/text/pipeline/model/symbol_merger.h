#pragma once
// SymbolMerger: byte-pair merges over the symbols of one word. It repeatedly joins the adjacent pair of lowest rank,
// leftmost first, until no pair can be joined (Hugging Face tokenizers, models/bpe/word.rs). Does not include LibTorch.
#include <cstdint>
#include <vector>

#include "models/text/pipeline/model/pair_table.h"

namespace zero {

struct MergeSymbol {
  std::int32_t id = 0;
  std::uint32_t size = 0;  // its bytes in the word
};

struct RankedMerge {
  std::uint32_t rank = 0;
  std::int32_t id = 0;  // of the joined symbol
};
using RankedMerges = PairTable<RankedMerge>;

/// Joins all possible pairs in place.
void merge_symbols(const RankedMerges& merges, std::vector<MergeSymbol>& symbols);

}  // namespace zero
