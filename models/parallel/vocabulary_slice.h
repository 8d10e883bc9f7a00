#pragma once
// VocabularySlice: the tokens of the vocabulary whose logits this rank of the tensor axis computes.
#include <cstdint>

namespace zero {

class Communicator;

struct VocabularySlice {
  Communicator* ranks = nullptr;  // the ranks that hold all slices; null: each rank has all logits
  std::int64_t begin = 0;         // the first token of this rank's slice
  std::int64_t full = 0;          // size of the vocabulary

  bool divides() const { return ranks != nullptr; }
};

}  // namespace zero
