#pragma once
// SymbolMerger: byte-pair merges over the symbols of one word. It joins the adjacent pair of lowest rank, the leftmost
// of equals first, until none is left (Hugging Face tokenizers, models/bpe/word.rs). No LibTorch.
#include <cstdint>
#include <vector>

#include "models/text/pipeline/model/pair_table.h"

namespace zero {

struct MergeSymbol {
  std::int32_t id = 0;
  std::uint32_t size = 0;  // bytes of the word
};

struct RankedMerge {
  std::uint32_t rank = 0;
  std::int32_t id = 0;  // of the joined symbol
};
using RankedMerges = PairTable<RankedMerge>;

/// Joins all possible pairs in place.
void merge_symbols(const RankedMerges& merges, std::vector<MergeSymbol>& symbols);

}  // namespace zero
